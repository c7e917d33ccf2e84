package import CairnStore

/// The writes of a followed store: numbered batches. The number of the last batch determines the
/// contents of the store. So a reader can tell whether the store was ever in the state that it
/// sees.
///
/// Batch `n` sets `number` to n and `since` to the last number before which everything was removed.
/// The batch also sets one of the keys and removes another. Before some batches, everything is
/// removed. Between some, the space of dead records is reclaimed.
package struct FollowedWorkload: Sendable {
  private static let keyCount = 40
  /// After how many batches a key is removed unless it is overwritten.
  private static let lifetime = 25

  package let seed: UInt64

  package init(seed: UInt64) { self.seed = seed }

  private func mixed(_ number: Int) -> UInt64 {
    var random = FuzzRandom(seed: seed &+ UInt64(number) &* 0x9E37_79B9)
    return random.next()
  }

  private func value(_ number: Int) -> [UInt8] {
    let word = mixed(number)
    // Sometimes too large for a segment of 64 KiB.
    let count = word % 97 == 0 ? 70_000 : Int(word >> 8 % 500)
    return [UInt8](repeating: UInt8(truncatingIfNeeded: word >> 32), count: count)
  }

  private static func text(_ number: Int) -> [UInt8] { Array("\(number)".utf8) }
  private static func number(_ text: [UInt8]?) -> Int? {
    text.flatMap { Int(String(decoding: $0, as: UTF8.self)) }
  }

  /// A configuration that makes compactions, large writes and new segments frequent.
  package static var configuration: StoreConfiguration {
    var configuration = StoreConfiguration()
    configuration.log = .silent
    configuration.segmentByteLimit = 64 << 10
    configuration.durability = .process
    configuration.spaceBound = 1.2
    configuration.deadByteFloor = 0
    configuration.asideOperationCount = 4
    return configuration
  }

  /// Writes batches to a store, and reports each one once it is acknowledged.
  ///
  /// - Parameters:
  ///   - base: higher than all numbers that were used.
  ///   - isOver: called before each batch.
  package func run(
    in store: Store, base: Int, until isOver: () -> Bool = { false }, _ tell: (Int) throws -> Void
  ) throws {
    var number = Self.number(try store.value(forKey: "number"))
    var since = Self.number(try store.value(forKey: "since")) ?? 0
    if number == nil { since = base }
    while !isOver() {
      let next = (number ?? base) + 1
      let word = mixed(next) >> 40
      if word % 150 == 0 {
        try store.removeAll()
        since = next - 1
      } else if word % 150 < 5 {
        try store.compact()
      } else if word % 150 == 5 {
        try store.checkpoint()
      }
      try store.write { batch in
        try batch.setValue(Self.text(next), forKey: "number")
        try batch.setValue(value(next), forKey: "key \(next % Self.keyCount)")
        try batch.removeValue(forKey: "key \((next - Self.lifetime) %% Self.keyCount)")
        try batch.setValue(Self.text(since), forKey: "since")
      }
      number = next
      try tell(next)
    }
  }

  /// The state after a batch.
  private func state(_ number: Int, since: Int) -> [[UInt8]: [UInt8]] {
    var state: [[UInt8]: [UInt8]] = [:]
    for other in max(since + 1, number - Self.lifetime + 1)...number {
      state[Array("key \(other % Self.keyCount)".utf8)] = value(other)
    }
    state[Array("number".utf8)] = Self.text(number)
    state[Array("since".utf8)] = Self.text(since)
    return state
  }

  /// Follows a store. Each call makes a few reads, and throws if no order of writes explains what
  /// they find.
  package struct Reader {
    private let workload: FollowedWorkload
    /// The newest state that was seen, and whether all of it was gone later.
    package private(set) var last = 0
    private var isGone = false
    package private(set) var stateCount = 0

    package init(_ workload: FollowedWorkload) { self.workload = workload }

    /// - Parameter acknowledged: the last batch that was acknowledged before the call.
    package mutating func look(at store: Store, acknowledged: Int) throws {
      let number = FollowedWorkload.number(try store.value(forKey: "number"))
      try note(number, acknowledged: acknowledged)
      if let number {
        // This read comes later in program order, so it finds no earlier state.
        if let since = FollowedWorkload.number(try store.value(forKey: "since")), since >= number {
          try note(since + 1, acknowledged: 0)
        }
      }
      let snapshot = try store.snapshot()
      defer { snapshot.close() }
      var contents: [[UInt8]: [UInt8]] = [:]
      try snapshot.forEachEntry { entry in
        contents[entry.key] = entry.value
        return .next
      }
      let seen = FollowedWorkload.number(contents[Array("number".utf8)])
      try note(seen, acknowledged: acknowledged)
      guard let seen else {
        if !contents.isEmpty { throw FollowedError("a part of a state: \(contents.keys)") }
        return
      }
      guard let since = FollowedWorkload.number(contents[Array("since".utf8)]), since < seen,
        contents == workload.state(seen, since: since)
      else { throw FollowedError("no state of the store, at \(seen)") }
      stateCount += 1
    }

    private mutating func note(_ number: Int?, acknowledged: Int) throws {
      guard let number else {
        isGone = true
        return
      }
      if number < last { throw FollowedError("\(number) after \(last)") }
      if number == last, isGone { throw FollowedError("\(number) is back") }
      if number < acknowledged { throw FollowedError("\(number), and \(acknowledged) is there") }
      if number > last { isGone = false }
      last = number
    }
  }
}

/// What a follower found that no order of writes explains.
package struct FollowedError: Error, CustomStringConvertible {
  package let description: String
  package init(_ description: String) { self.description = description }
}

infix operator %% : MultiplicationPrecedence

/// The remainder that is not negative.
private func %% (_ number: Int, _ divisor: Int) -> Int {
  let remainder = number % divisor
  return remainder < 0 ? remainder + divisor : remainder
}
