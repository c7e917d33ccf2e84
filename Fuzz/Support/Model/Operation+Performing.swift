package import CairnStore

extension Operation {
  /// Performs the operation on a store with the contents `state`, and checks the result. The caller
  /// handles what concerns the process: reopening, and the passing of time.
  ///
  /// - Parameters:
  ///   - storeDurability: the durability of the store's configuration; an operation with the same
  ///     one names none.
  ///   - mayEvict: whether limits are overdue, which a write enforces before anything else.
  ///   - mayCountMore: whether the store may count a record as live that was unreadable when it was
  ///     replaced.
  ///   - hasMisread: whether a record could not be read.
  /// - Returns: the versions of the put values.
  /// - Throws: what the store throws; `FuzzFailure` if a result is wrong.
  package func perform(
    on store: Store, holding state: ModelState, now: Timestamp,
    storeDurability: Durability? = nil, mayEvict: Bool = false, mayCountMore: Bool = false,
    hasMisread: () -> Bool = { false }
  ) throws -> [[UInt8]: UInt64] {
    let given = durability == storeDurability ? nil : durability
    switch self {
    case .put(let key, let entry, _):
      return [
        key: try store.setValue(
          entry.value, forKey: key,
          options: EntryOptions(
            cost: entry.cost, lifetime: entry.lifetime(now), idleLimit: entry.idleLimit,
            metadata: entry.metadata), durability: given)
      ]
    case .remove(let key, _):
      let isThere = try store.removeValue(forKey: key, durability: given)
      let isExpected = isThere == (applied(to: state, now: now) != nil)
      // An expired entry may still exist. Its record shows whether its lifetime has ended. If the
      // record is unreadable, the key counts as present and is removed, as `locate` in the store
      // explains. Otherwise an unreadable value would stay although its removal was acknowledged.
      if !isExpected, !(isThere && state[key] != nil && hasMisread()) {
        throw FuzzFailure("a removal returns \(isThere)")
      }
    case .batch(let changes, _):
      let batch = Result {
        try store.write(durability: given) { batch in
          for (key, entry) in changes {
            // Requires the current version of some keys. Reading it is no access.
            if key.count % 2 == 0, let info = try? store.info(forKey: key) {
              try batch.require(info.version, forKey: key)
            }
            if let entry {
              try batch.setValue(
                entry.value, forKey: key,
                options: EntryOptions(
                  cost: entry.cost, lifetime: entry.lifetime(now), idleLimit: entry.idleLimit,
                  metadata: entry.metadata))
            } else {
              try batch.removeValue(forKey: key)
            }
          }
        }
      }
      if mayEvict, case .failure(StoreError.conflict) = batch { throw EvictedFirst() }
      try batch.get()
    case .compareAndSet(let key, let entry, let isRight, _):
      // A batch does not return its versions, so they are read from the store.
      let current = try store.info(forKey: key)?.version
      let expected = isRight ? current : (current == nil ? 1 : nil)
      let result = try store.compareAndSet(
        entry.value, forKey: key, expecting: expected,
        options: EntryOptions(
          cost: entry.cost, lifetime: entry.lifetime(now), idleLimit: entry.idleLimit,
          metadata: entry.metadata),
        durability: given)
      switch result {
      case .stored(let version) where isRight: return [key: version]
      case .mismatch(current) where !isRight: break
      case .mismatch(nil) where mayEvict: throw EvictedFirst()
      default: throw FuzzFailure("a compare-and-set returns \(result)")
      }
    case .setLifetime(let key, let lifetime, _):
      let isThere = try store.setLifetime(.after(lifetime), forKey: key, durability: given)
      let entry = state[key].flatMap { $0.hasExpired(now) ? nil : $0 }
      if !isThere, entry != nil, mayEvict { throw EvictedFirst() }
      if isThere != (entry != nil) {
        throw FuzzFailure("a change of a lifetime returns \(isThere)")
      }
    case .compareAndRemove(let key, let isRight, _):
      let current = try store.info(forKey: key)?.version
      let isRemoved = try store.compareAndRemove(
        forKey: key, expecting: isRight ? current ?? 1 : (current ?? 0) + 1, durability: given)
      if isRemoved != (applied(to: state, now: now) != nil) {
        throw FuzzFailure("a compare-and-remove returns \(isRemoved)")
      }
    case .removeMany(let keys, _):
      let expected = steps(from: state, now: now).count
      let removed = try store.removeValues(forKeys: keys, durability: given)
      let expiredCount = Set(keys).count { state[$0]?.hasExpired(now) ?? false }
      // As with one key, an unreadable expired entry may count as present.
      let most = hasMisread() ? expected + expiredCount : expected
      guard (expected...most).contains(removed) else {
        throw FuzzFailure("removals return \(removed) instead of \(expected)")
      }
    case .update(let key, let value, _):
      let old = state[key].flatMap { $0.hasExpired(now) ? nil : $0 }
      let result = try store.update(forKey: key, durability: given) { found in
        if found != old?.value { throw FuzzFailure("an update finds another value") }
        return value
      }
      if result?.value != value { throw FuzzFailure("an update returns another value") }
      if let result { return [key: result.version] }
    case .removeAll: try store.removeAll()
    case .trimBytes(let byteCount, _):
      let most = steps(from: state, now: now).count + state.values.count { $0.hasExpired(now) }
      let summary = try store.trim(.toBytes(byteCount), durability: given)
      if summary.damagedCount > 0, hasMisread() { throw SparedEntries() }
      if summary.count > most, !mayCountMore {
        throw FuzzFailure("\(name) removes \(summary.count) instead of \(most) at most")
      }
    case .trimOlder(let age, let basis, _):
      let victims = state.victims(olderThan: age, by: basis, now: now)
      if victims.count > Self.victimLimit { break }
      let least = basis == .write ? victims.count : state.unused(for: age, now: now).count
      let expiredCount = state.values.count { $0.hasExpired(now) }
      let summary = try store.trim(
        basis == .access ? .unused(for: age) : .older(than: age), durability: given)
      if summary.damagedCount > 0, hasMisread() { throw SparedEntries() }
      guard (least...victims.count + expiredCount).contains(summary.count) else {
        throw FuzzFailure(
          "\(name) removes \(summary.count) instead of \(least) to \(victims.count)")
      }
    case .trim(let count, _):
      let victims = state.victims(trimmingTo: count, now: now)
      let expiredCount = state.values.count { $0.hasExpired(now) }
      let summary = try store.trim(.toCount(count), durability: given)
      if summary.damagedCount > 0, hasMisread() { throw SparedEntries() }
      let removed = summary.count
      // Expired entries may have been removed before.
      guard (victims.count...victims.count + expiredCount).contains(removed) else {
        throw FuzzFailure("a trim to \(count) removes \(removed) instead of \(victims.count)")
      }
    case .removeExpired:
      let summary = try store.trim(.expired, durability: given)
      let removed = summary.count
      if removed > state.values.count(where: { $0.hasExpired(now) }) {
        throw FuzzFailure("a removal of the expired removes \(removed)")
      }
      if summary.damagedCount > 0, hasMisread() { break }
      var left = 0
      try store.forEachKey { _ in
        left += 1
        return .next
      }
      guard try store.statistics().count == left, try store.count() == left else {
        throw FuzzFailure("a removal of the expired leaves some")
      }
    case .compact:
      let report = try store.compact()
      if report.unreadableSegmentCount > 0 { throw FuzzFailure("a compaction finds damage") }
    case .sync: try store.sync()
    case .checkpoint: try store.checkpoint()
    case .backup(let path):
      let report = try store.backup(to: path)
      if !report.damage.isEmpty { throw FuzzFailure("a backup finds damage") }
    case .get(let key):
      let entry = state[key].flatMap { $0.hasExpired(now) ? nil : $0 }
      guard try store.value(forKey: key) == entry?.value else {
        throw FuzzFailure("a read does not find what was written")
      }
    case .wait, .runJobs, .snapshot, .reopen: break
    }
    return [:]
  }
}

/// Thrown when a trim skipped entries whose records the medium could not read. It may have removed
/// others instead.
struct SparedEntries: Error {}

/// Thrown when an overdue eviction removed the key before the operation read it.
struct EvictedFirst: Error {}

extension ModelEntry {
  fileprivate func lifetime(_ now: Timestamp) -> Lifetime {
    expires.map { .milliseconds($0.millisecondsSinceEpoch - now.millisecondsSinceEpoch) }
      ?? .standard
  }
}

extension Operation {
  /// Whether the operation makes all earlier writes durable although it writes nothing itself: a
  /// removal that finds nothing guarantees that the key stays absent.
  package var makesAbsenceDurable: Bool {
    switch self {
    case .remove, .removeMany, .trim, .trimBytes, .removeExpired: durability == .durable
    case .removeAll: true
    default: false
    }
  }
}

extension ModelStore {
  /// Records that an operation that leads to `next` returned these versions.
  package mutating func acknowledge(
    _ next: ModelState, _ versions: [[UInt8]: UInt64], _ operation: Operation, now: Timestamp
  ) {
    var next = next
    for (key, version) in versions { next[key]?.version = version }
    var durability = operation.durability
    // It waits for the disk in every class.
    if case .removeAll = operation { durability = .durable }
    switch durability {
    case .durable:
      acknowledge(next)
      settle()
    case .interval(let interval): acknowledge(next, durableBy: now.advanced(by: interval))
    case .process, nil: acknowledge(next)
    }
  }
}
