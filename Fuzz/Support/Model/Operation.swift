package import CairnStore

/// One action of a workload on a store.
package enum Operation {
  /// A change of one key: a new value, or its removal.
  package typealias Change = (key: [UInt8], entry: ModelEntry?)

  case put(key: [UInt8], ModelEntry, Durability)
  case remove(key: [UInt8], Durability)
  case batch([Change], Durability)
  /// A compare-and-set that expects the current version, or another one.
  case compareAndSet(key: [UInt8], ModelEntry, isRight: Bool, Durability)
  /// Sets a lifetime of this length from now on, if that is longer.
  case setLifetime(key: [UInt8], Duration, Durability)
  /// A removal that expects the current version, or another one.
  case compareAndRemove(key: [UInt8], isRight: Bool, Durability)
  /// Removals of many keys, each as a separate write.
  case removeMany(keys: [[UInt8]], Durability)
  /// An update to a new value, or to none, that keeps the entry's other attributes.
  case update(key: [UInt8], value: [UInt8]?, Durability)
  case removeAll
  case trim(toCount: Int, Durability)
  case trimBytes(to: Int, Durability)
  /// Removes entries that were written, or used, longer ago.
  case trimOlder(than: Duration, by: AgeBasis, Durability)
  case removeExpired(Durability)
  /// Reclaims space, which changes no read.
  case compact
  /// A compaction as on a full disk: segments are cut piece by piece, each of about this many
  /// bytes.
  case sync
  /// Time passes, and the jobs that wait for it run.
  case wait(Duration)
  /// Background work catches up.
  case runJobs
  case get(key: [UInt8])
  case checkpoint
  /// Takes a snapshot, to be checked later.
  case snapshot
  /// Makes a copy at the path.
  case backup(to: String)
  case reopen

  /// The state that the operation leads to, or `nil` if it writes nothing.
  package func applied(
    to state: ModelState, now: Timestamp
  ) -> ModelState? {
    steps(from: state, now: now).last
  }

  /// The states that the operation leads to, one after another. A crash may leave any of them.
  ///
  /// The model knows the sizes of records within a few bytes. If an operation is limited by bytes,
  /// some of these states may not be reached; `taken` determines which are.
  ///
  /// - Parameter limits: those of the configuration. If there are any, no entry may have a
  ///   lifetime, because it is unknown whether expired entries still count.
  package func steps(
    from state: ModelState, now: Timestamp, limits: ModelLimits = ModelLimits()
  ) -> [ModelState] {
    switch self {
    // Each removal is a separate write. Expired entries are removed too, which no read shows.
    case .trim(let count, _):
      return state.removing(state.victims(trimmingTo: count, now: now)[...])
    case .trimBytes(let byteCount, _):
      return state.removing(state.victims(trimmingToBytes: byteCount, now: now)[...])
    case .trimOlder(let age, let basis, _):
      return stepsByAge(age, by: basis, from: state, now: now)
    case .removeMany(let keys, _):
      var seen: Set<[UInt8]> = []
      let present = keys.filter {
        seen.insert($0).inserted && state[$0].map { !$0.hasExpired(now) } ?? false
      }
      let steps = state.removing(present[...])
      return steps + (steps.last?.evictions(limits, now: now) ?? [])
    default:
      guard let next = step(from: state, now: now) else { return [] }
      // Each eviction is a separate write.
      return [next] + next.evictions(limits, now: now)
    }
  }

  /// A trim by age visits parts of the index, in an order that only the store knows. A crash may
  /// leave any part of it done.
  private func stepsByAge(
    _ age: Duration, by basis: AgeBasis, from state: ModelState, now: Timestamp
  ) -> [ModelState] {
    let victims = state.victims(olderThan: age, by: basis, now: now)
    if victims.isEmpty || victims.count > Self.victimLimit { return [] }
    return (1..<(1 << victims.count)).map { parts in
      var next = state
      for (index, key) in victims.enumerated() where parts & 1 << index != 0 { next[key] = nil }
      return next
    }
  }

  /// The maximum number of entries that a trim by age may remove. With more, a crash could leave
  /// too many states.
  static let victimLimit = 7

  private func step(from state: ModelState, now: Timestamp) -> ModelState? {
    var next = state
    switch self {
    case .put(let key, let entry, _), .compareAndSet(let key, let entry, true, _):
      next.write(entry, to: key, at: now)
    case .remove(let key, _), .compareAndRemove(let key, true, _):
      guard let entry = state[key], !entry.hasExpired(now) else { return nil }
      next[key] = nil
    case .update(let key, let value, _):
      let old = state[key].flatMap { $0.hasExpired(now) ? nil : $0 }
      guard var entry = old ?? value.map({ ModelEntry(value: $0) }) else { return nil }
      entry.version = nil
      if let value { entry.value = value }
      next.write(value == nil ? nil : entry, to: key, at: now)
    case .setLifetime(let key, let lifetime, _):
      let end = now.advanced(by: lifetime)
      guard var entry = state[key], !entry.hasExpired(now), entry.expires != end else { return nil }
      entry.expires = end
      entry.version = nil
      next.write(entry, to: key, at: now)
    case .batch(let changes, _):
      if changes.isEmpty { return nil }
      for change in changes { next.write(change.entry, to: change.key, at: now) }
    case .removeAll:
      next = [:]
    case .compareAndSet, .compareAndRemove, .removeMany, .trim, .trimBytes, .trimOlder,
      .removeExpired, .compact, .sync, .wait, .runJobs, .get, .checkpoint,
      .snapshot, .backup, .reopen:
      return nil
    }
    return next
  }

  /// A description, without keys and values.
  package var name: String {
    let name =
      switch self {
      case .put(_, let entry, _): "a put of \(entry.value.count) bytes"
      case .remove: "a removal"
      case .batch(let changes, _): "a batch of \(changes.count)"
      case .compareAndSet: "a compare-and-set"
      case .setLifetime: "a change of a lifetime"
      case .compareAndRemove: "a compare-and-remove"
      case .removeMany(let keys, _): "removals of \(keys.count)"
      case .update(_, let value, _):
        value.map { "an update to \($0.count) bytes" } ?? "an update to none"
      case .removeAll: "a removal of all"
      case .trim(let count, _): "a trim to \(count)"
      case .trimBytes(let byteCount, _): "a trim to \(byteCount) bytes"
      case .trimOlder(let age, let basis, _): "a trim of what is older than \(age) by \(basis)"
      case .removeExpired: "a removal of the expired"
      case .compact: "a compaction"
      case .sync: "a sync"
      case .wait(let duration): "a wait of \(duration)"
      case .runJobs: "background work"
      case .get: "a read"
      case .checkpoint: "a checkpoint"
      case .snapshot: "a snapshot"
      case .backup: "a backup"
      case .reopen: "a close and an open"
      }
    return durability.map { "\(name) (\($0))" } ?? name
  }

  package var isCompaction: Bool {
    switch self {
    case .compact: true
    default: false
    }
  }

  /// Whether the operation consists of many writes. If it throws, some of them may have happened.
  package var isGradual: Bool {
    switch self {
    case .removeMany, .trim, .trimBytes, .trimOlder: true
    default: false
    }
  }

  package var durability: Durability? {
    switch self {
    case .put(_, _, let durability), .remove(_, let durability), .batch(_, let durability),
      .compareAndSet(_, _, _, let durability), .setLifetime(_, _, let durability),
      .compareAndRemove(_, _, let durability), .removeMany(_, let durability),
      .update(_, _, let durability), .trim(_, let durability), .trimBytes(_, let durability),
      .trimOlder(_, _, let durability), .removeExpired(let durability):
      durability
    default: nil
    }
  }
}
