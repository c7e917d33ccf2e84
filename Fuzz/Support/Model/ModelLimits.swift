package import CairnStore

/// The limits of a configuration that every write enforces.
package struct ModelLimits {
  package var count: Int?
  package var byteCount: Int?

  package init() {}

  package init(_ configuration: StoreConfiguration) {
    count = configuration.countLimit
    byteCount = configuration.byteLimit
  }
}

extension ModelEntry {
  /// The maximum bytes of the log that the entry takes: its record, with the fields that a batch
  /// and a sync add.
  func byteCountLimit(key: [UInt8]) -> Int {
    var header = RecordHeader(kind: .put)
    header.keyByteCount = key.count
    header.valueByteCount = value.count
    header.flags = [.batch, .syncMark]
    if !metadata.isEmpty { header.flags.insert(.metadata) }
    header.metadataByteCount = metadata.count
    if cost != nil { header.flags.insert(.cost) }
    if idleLimit != nil { header.flags.insert(.idleLimit) }
    if expires != nil { header.flags.insert(.expiry) }
    return header.byteCount
  }
}

extension ModelState {
  /// The maximum bytes of the log that unexpired entries take.
  private func byteCountLimit(now: Timestamp) -> Int {
    filter { !$0.value.hasExpired(now) }.reduce(0) {
      $0 + $1.value.byteCountLimit(key: $1.key)
    }
  }

  /// The keys that a trim to this many bytes removes, in order, and perhaps some more.
  func victims(trimmingToBytes byteCount: Int, now: Timestamp) -> [[UInt8]] {
    var total = byteCountLimit(now: now)
    return Array(
      keysByRecency(now: now).prefix { key in
        defer { total -= self[key]?.byteCountLimit(key: key) ?? 0 }
        return total > byteCount
      })
  }

  /// The keys of unexpired entries that were written longer ago. For a trim by access, the keys
  /// that it may remove: the time of an access is known only within 1 %, and not always.
  func victims(olderThan age: Duration, by basis: AgeBasis, now: Timestamp) -> [[UInt8]] {
    if age <= .zero { return keysByRecency(now: now) }
    let isByAccess = basis == .access
    let age = isByAccess ? age * 49 / 50 - .milliseconds(2) : age
    let oldest = now.advanced(by: .zero - age)
    return keysByRecency(now: now).filter { key in
      let time = isByAccess ? self[key]?.accessed ?? self[key]?.written : self[key]?.written
      return time.map { $0 < oldest } ?? false
    }
  }

  /// The keys of unexpired entries that have certainly not been used for that long.
  package func unused(for age: Duration, now: Timestamp) -> [[UInt8]] {
    let oldest = now.advanced(by: .zero - age)
    return keysByRecency(now: now).filter { self[$0]?.accessed.map { $0 < oldest } ?? false }
  }

  /// The states that removals of the keys lead to, one after another.
  func removing(_ keys: ArraySlice<[UInt8]>) -> [ModelState] {
    var next = self
    return keys.map { key in
      next[key] = nil
      return next
    }
  }

  /// The states that enforcing the limits leads to, one after another.
  func evictions(_ limits: ModelLimits, now: Timestamp) -> [ModelState] {
    if let limit = limits.byteCount {
      // A store may go 1 % below the limit, and keeps the newest entry.
      return removing(victims(trimmingToBytes: limit - limit / 100, now: now)[...])
        .filter { !$0.isEmpty }
    }
    return removing(victims(trimmingTo: limits.count ?? .max, now: now)[...])
  }
}

extension Operation {
  /// How many of its possible steps a completed operation took: all of them, unless it counts
  /// bytes, or the store may have been unable to enforce its limits.
  ///
  /// - Parameter mayCountMore: whether the store may count a record as live that was unreadable
  ///   when it was replaced.
  package func taken(
    of steps: [ModelState], from state: ModelState, in store: Store, limits: ModelLimits,
    mayMissLimits: Bool = false, mayCountMore: Bool = false, now: Timestamp
  ) throws -> [ModelState] {
    var steps = steps
    var limit = limits.byteCount ?? .max
    // The evictions come last.
    var least = self.steps(from: state, now: now).count
    switch self {
    // These operations are exact, and enforce no limits.
    case .trim, .trimOlder(_, .write, _): return steps
    case .trimOlder(let age, .access, _):
      return try takenByAccess(olderThan: age, of: steps, from: state, in: store, now: now)
    case .trimBytes(let byteCount, _):
      (limit, least) = (byteCount, 0)
      // If the store counts more, it may have to remove more than the known contents require.
      if mayCountMore { steps = state.removing(state.victims(trimmingToBytes: 0, now: now)[...]) }
    default: if limits.byteCount == nil, !mayMissLimits { return steps }
    }
    if steps.isEmpty { return [] }
    let contents = try StoreContents(of: store, now: now)
    let states = [state] + steps
    guard let last = states.indices.last(where: { contents.match([states[$0]]) != nil }),
      last >= least
    else {
      throw FuzzFailure(
        "\(name) leads to another state: \(contents.differences(from: states[states.count - 1]))")
    }
    let byteCount = try store.statistics().liveByteCount
    if byteCount > limit, !mayMissLimits, !mayCountMore {
      throw FuzzFailure("\(name) leaves \(byteCount) bytes of \(limit)")
    }
    return Array(steps.prefix(last))
  }

  /// The states through which a trim by access reached its result.
  private func takenByAccess(
    olderThan age: Duration, of steps: [ModelState], from state: ModelState, in store: Store,
    now: Timestamp
  ) throws -> [ModelState] {
    if steps.isEmpty { return [] }
    let contents = try StoreContents(of: store, now: now)
    guard let last = contents.match([state] + steps) else {
      throw FuzzFailure("\(name) leads to another state: \(contents.differences(from: state))")
    }
    if let key = state.unused(for: age, now: now).first(where: { last[$0] != nil }) {
      throw FuzzFailure("\(name) leaves \(String(decoding: key.prefix(20), as: UTF8.self))")
    }
    // Every intermediate state includes the final one, which comes last.
    return steps.filter { step in last.keys.allSatisfy { step[$0] != nil } }
      .sorted { $0.count > $1.count }
  }
}
