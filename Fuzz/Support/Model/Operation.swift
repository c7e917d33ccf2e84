package import CairnStore

/// One thing that a workload does with a store.
package enum Operation {
  /// A change of one key: a new value, or its removal.
  package typealias Change = (key: [UInt8], entry: ModelEntry?)

  case put(key: [UInt8], ModelEntry, Durability)
  case remove(key: [UInt8], Durability)
  case batch([Change], Durability)
  /// A compare-and-set that expects what is there, or something else.
  case compareAndSet(key: [UInt8], ModelEntry, isRight: Bool, Durability)
  /// A life for so long from now on, if that is longer.
  case extend(key: [UInt8], Duration, Durability)
  case removeAll
  case trim(toCount: Int, Durability)
  case removeExpired(Durability)
  /// Gives back space, which nobody can see.
  case compact
  /// The same as on a full disk: segments are cut off piece by piece, each of about so many bytes.
  case compactByPieces(of: Int)
  case sync
  /// Time passes, and what waits for it is done.
  case wait(Duration)
  /// The background catches up.
  case runJobs
  case get(key: [UInt8])
  case checkpoint
  /// A snapshot is taken, to be looked at later.
  case snapshot
  /// A copy is made at the path.
  case backup(to: String)
  case reopen

  /// The state that this leads to, or `nil` where it writes nothing.
  package func applied(
    to state: ModelState, now: Timestamp, countLimit: Int? = nil
  ) -> ModelState? {
    steps(from: state, now: now, countLimit: countLimit).last
  }

  /// The states that this leads to one after the other, any of which a crash may leave.
  ///
  /// - Parameter countLimit: that of the configuration; then nothing may have a lifetime, since it is
  ///   not known whether what has expired still counts.
  package func steps(
    from state: ModelState, now: Timestamp, countLimit: Int? = nil
  ) -> [ModelState] {
    if case .trim(let count, _) = self {
      // Each removal is a write of its own. What has expired goes too, which nobody can see.
      var next = state
      return state.victims(trimmingTo: count, now: now).map { key in
        next[key] = nil
        return next
      }
    }
    guard var next = step(from: state, now: now) else { return [] }
    var steps = [next]
    // Each eviction is a write of its own.
    for key in next.victims(trimmingTo: countLimit ?? .max, now: now) {
      next[key] = nil
      steps.append(next)
    }
    return steps
  }

  private func step(from state: ModelState, now: Timestamp) -> ModelState? {
    var next = state
    switch self {
    case .put(let key, let entry, _), .compareAndSet(let key, let entry, true, _):
      next.write(entry, to: key, at: now)
    case .remove(let key, _):
      guard let entry = state[key], !entry.hasExpired(now) else { return nil }
      next[key] = nil
    case .extend(let key, let lifetime, _):
      guard let entry = state[key], !entry.hasExpired(now), let expires = entry.expires,
        expires < now.advanced(by: lifetime)
      else { return nil }
      next[key]?.expires = now.advanced(by: lifetime)
    case .batch(let changes, _):
      if changes.isEmpty { return nil }
      for change in changes { next.write(change.entry, to: change.key, at: now) }
    case .removeAll:
      next = [:]
    case .compareAndSet, .trim, .removeExpired, .compact, .compactByPieces, .sync, .wait, .runJobs,
      .get, .checkpoint, .snapshot, .backup, .reopen:
      return nil
    }
    return next
  }

  /// What it is, without keys and values.
  package var name: String {
    let name =
      switch self {
      case .put(_, let entry, _): "a put of \(entry.value.count) bytes"
      case .remove: "a removal"
      case .batch(let changes, _): "a batch of \(changes.count)"
      case .compareAndSet: "a compare-and-set"
      case .extend: "an extension"
      case .removeAll: "a removal of all"
      case .trim(let count, _): "a trim to \(count)"
      case .removeExpired: "a removal of the expired"
      case .compact: "a compaction"
      case .compactByPieces(let byteCount): "a compaction by pieces of \(byteCount)"
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
    case .compact, .compactByPieces: true
    default: false
    }
  }

  package var durability: Durability? {
    switch self {
    case .put(_, _, let durability), .remove(_, let durability), .batch(_, let durability),
      .compareAndSet(_, _, _, let durability), .extend(_, _, let durability),
      .trim(_, let durability),
      .removeExpired(let durability):
      durability
    default: nil
    }
  }
}

/// Makes operations, each value a different one.
package struct OperationGenerator {
  /// Few, so that they are overwritten often; one is long, one is the beginning of others.
  package static let keys: [[UInt8]] =
    (0..<9).map { Array("key \($0)".utf8) }
    + [Array("key".utf8), [UInt8](repeating: 0x6B, count: 300), [0]]

  private var valueCount = 0
  private var backupCount = 0
  /// Whether entries may have lifetimes.
  package var mayExpire = true

  package init() {}

  private mutating func value(byteCount: Int) -> [UInt8] {
    valueCount += 1
    var random = FuzzRandom(seed: UInt64(valueCount))
    return random.bytes(count: byteCount)
  }

  package mutating func entry(
    _ choices: inout some ChoiceSource, now: Timestamp, mayBeLarge: Bool = true
  ) -> ModelEntry {
    let byteCount =
      switch choices.below(40) {
      case 0: 0
      case 1..<20: 8 + choices.below(120)
      case 20..<30: 8 + choices.below(1000)
      case 30..<39: 2000 + choices.below(18_000)
      default: mayBeLarge ? 66_000 + choices.below(20_000) : 500
      }
    var entry = ModelEntry(value: value(byteCount: byteCount))
    if choices.once(in: 8) {
      entry.metadata = Array("metadata \(valueCount)".utf8)
      entry.cost = choices.below(1000)
    }
    if choices.once(in: 5), mayExpire {
      entry.expires = now.advanced(by: .milliseconds(1 + choices.below(5000)))
    }
    return entry
  }

  private func durability(_ choices: inout some ChoiceSource) -> Durability {
    switch choices.below(8) {
    case 0..<2: .durable
    case 2: .interval(.milliseconds([20, 50, 200][choices.below(3)]))
    default: .process
    }
  }

  package mutating func next(_ choices: inout some ChoiceSource, now: Timestamp) -> Operation {
    let key = choices.element(of: Self.keys)
    switch choices.below(100) {
    case 0..<45: return .put(key: key, entry(&choices, now: now), durability(&choices))
    case 45..<48:
      return .extend(
        key: key, .milliseconds(1 + choices.below(8000)), durability(&choices))
    case 48..<58: return .remove(key: key, durability(&choices))
    case 58..<72:
      var changes: [Operation.Change] = []
      for _ in 0..<(1 + choices.below(6)) {
        let key = choices.element(of: Self.keys)
        let isRemoval = choices.once(in: 3)
        changes.append(
          (key, isRemoval ? nil : entry(&choices, now: now, mayBeLarge: false)))
      }
      return .batch(changes, durability(&choices))
    case 72..<78:
      return .compareAndSet(
        key: key, entry(&choices, now: now), isRight: !choices.once(in: 3), durability(&choices))
    case 78..<80: return .removeAll
    case 80..<84: return .sync
    case 84..<88: return .wait(.milliseconds(choices.below(choices.once(in: 4) ? 4000 : 200)))
    case 88..<90: return .runJobs
    case 90: return .checkpoint
    case 91..<93:
      if choices.once(in: 3) { return .removeExpired(durability(&choices)) }
      return .trim(toCount: choices.below(10), durability(&choices))
    case 93..<95: return .get(key: key)
    case 95..<97:
      return choices.once(in: 2)
        ? .compact : .compactByPieces(of: 100 << choices.below(10))
    case 97:
      if choices.once(in: 2) { return .snapshot }
      backupCount += 1
      return .backup(to: "/backup-\(backupCount)")
    default: return .reopen
    }
  }
}
