package import CairnStore

/// The contents of one key.
package struct ModelEntry: Equatable {
  package var value: [UInt8]
  package var metadata: [UInt8] = []
  package var cost: Int?
  /// So long that it never ends in a workload. No copy of the entry may lose this limit.
  package var idleLimit: Duration?
  package var expires: Timestamp?
  /// When it was written, or `nil` if unknown.
  package var written: Timestamp?
  /// `nil` if the write was not acknowledged.
  package var version: UInt64?
  /// Increases with each read and write of the store: the order of recency.
  package var access: UInt64 = 0
  /// The time of the last access, if the process that has the store open knows it for certain.
  package var accessed: Timestamp?

  package init(value: [UInt8]) { self.value = value }

  /// The entry as written at this time, which a record stores in seconds.
  package func written(at now: Timestamp) -> ModelEntry {
    var entry = self
    let seconds = now.millisecondsSinceEpoch / 1000
    entry.written = Timestamp(millisecondsSinceEpoch: seconds * 1000)
    return entry
  }

  package func hasExpired(_ now: Timestamp) -> Bool { expires.map { $0 <= now } ?? false }
}

/// The contents of a store, by key.
package typealias ModelState = [[UInt8]: ModelEntry]

extension ModelState {
  /// The number of the next access.
  package var nextAccess: UInt64 { (values.map(\.access).max() ?? 0) + 1 }

  /// Writes the key, which is now the most recently accessed one.
  package mutating func write(_ entry: ModelEntry?, to key: [UInt8], at now: Timestamp) {
    let access = nextAccess
    self[key] = entry?.written(at: now)
    self[key]?.access = access
    self[key]?.accessed = now
  }

  /// Reads the key. A crash forgets this access, unlike a write.
  package mutating func read(_ key: [UInt8], at now: Timestamp) {
    guard let entry = self[key], !entry.hasExpired(now) else { return }
    let access = nextAccess
    self[key]?.access = access
    self[key]?.accessed = now
  }

  /// Takes the order of recency from the store.
  package mutating func order(by keysByRecency: [[UInt8]]) {
    for key in keys { self[key]?.accessed = nil }
    for (rank, key) in keysByRecency.enumerated() { self[key]?.access = UInt64(rank + 1) }
  }

  /// The keys that have not expired, the least recently accessed first.
  package func keysByRecency(now: Timestamp) -> [[UInt8]] {
    filter { !$0.value.hasExpired(now) }.sorted { $0.value.access < $1.value.access }.map(\.key)
  }

  /// The unexpired keys that a trim to this many removes, in order.
  package func victims(trimmingTo count: Int, now: Timestamp) -> [[UInt8]] {
    let alive = keysByRecency(now: now)
    return Array(alive.prefix(Swift.max(0, alive.count - count)))
  }
}

/// The model of a store: all states that it went through, and which of them a crash may bring back.
///
/// A crash must leave a state that the store was in: none earlier than the last one that was
/// acknowledged as durable, and the newest if only the process died.
package struct ModelStore {
  /// The states from the last durable one on.
  package private(set) var states: [ModelState]
  /// The states that current writes lead to, in order.
  package var candidates: [ModelState] = []
  /// How many candidates count as acknowledged: all up to the last acknowledged one. More may
  /// follow if another thread's write is waiting.
  package var acknowledgedCandidateCount = 0

  package init(_ state: ModelState = [:]) { states = [state] }

  /// What a read finds now.
  package var current: ModelState { states[states.count - 1] }

  /// States that become durable by a given time, each with its number from the beginning.
  private var due: [(number: Int, time: Timestamp)] = []
  /// How many states came before `states`.
  private var droppedCount = 0

  /// Records that the write that led to the state was acknowledged.
  ///
  /// - Parameter time: when it is durable at the latest, or `nil`.
  package mutating func acknowledge(_ state: ModelState, durableBy time: Timestamp? = nil) {
    states.append(state)
    if let time { due.append((droppedCount + states.count - 1, time)) }
  }

  /// Records a read, which makes the entry the most recently used.
  package mutating func noteRead(of key: [UInt8], now: Timestamp) {
    states[states.count - 1].read(key, at: now)
  }

  /// Records that everything acknowledged so far is durable.
  package mutating func settle() { settle(through: droppedCount + states.count - 1) }

  /// Records that everything due by this time has been synced.
  package mutating func settle(at now: Timestamp) {
    if let last = due.last(where: { $0.time <= now }) { settle(through: last.number) }
  }

  private mutating func settle(through number: Int) {
    guard number > droppedCount else { return }
    states.removeFirst(number - droppedCount)
    droppedCount = number
    due.removeAll { $0.number <= number }
  }

  /// What may be found if the power fails now.
  package var afterPowerCut: [ModelState] { states + candidates }
  /// What may be found if the process dies now.
  package var afterDeath: [ModelState] {
    Array(([current] + candidates).dropFirst(acknowledgedCandidateCount))
  }
}

/// What a read of the whole store returns.
package struct StoreContents {
  package private(set) var entries: [[UInt8]: ByteEntry] = [:]
  private let now: Timestamp

  package init(of store: Store, now: Timestamp) throws {
    self.now = now
    var entries: [[UInt8]: ByteEntry] = [:]
    try store.forEachEntry { entry in
      if entries.updateValue(entry, forKey: entry.key) != nil {
        throw FuzzFailure("an iteration returned a key twice: \(Self.name(entry.key))")
      }
      return .next
    }
    self.entries = entries
    guard try store.count() == entries.count else {
      throw FuzzFailure("a store counts \(try store.count()) instead of \(entries.count)")
    }
  }

  package init(of snapshot: Snapshot, now: Timestamp) throws {
    self.now = now
    var entries: [[UInt8]: ByteEntry] = [:]
    try snapshot.forEachEntry { entry in
      entries[entry.key] = entry
      return .next
    }
    self.entries = entries
    guard try snapshot.count() == entries.count else {
      throw FuzzFailure("a snapshot counts \(try snapshot.count()) instead of \(entries.count)")
    }
  }

  /// The state in `states` that equals this one; the newest first.
  package func match(_ states: [ModelState]) -> ModelState? {
    states.last { matches($0) }
  }

  private func matches(_ state: ModelState) -> Bool {
    var count = 0
    for (key, expected) in state {
      if expected.hasExpired(now) {
        if entries[key] != nil { return false }
        continue
      }
      guard let found = entries[key], Self.isEqual(found, expected) else { return false }
      count += 1
    }
    return count == entries.count
  }

  private static func isEqual(_ found: ByteEntry, _ expected: ModelEntry) -> Bool {
    found.value == expected.value && found.metadata == expected.metadata
      && found.info.givenCost == expected.cost && found.info.expires == expected.expires
      && found.info.idleLimit == expected.idleLimit
      && (expected.version.map { $0 == found.info.version } ?? true)
      && (expected.written.map { $0 == found.info.written } ?? true)
  }

  /// The state with the versions that were found, for continuing from here. A crash may bring back
  /// an earlier order of recency, so the order is taken from the store.
  package func completing(_ state: ModelState, keysByRecency: [[UInt8]]) -> ModelState {
    var state = state
    for key in state.keys { state[key]?.access = 0 }
    for (key, entry) in entries {
      state[key]?.version = entry.info.version
    }
    state.order(by: keysByRecency)
    return state
  }

  /// A readable list of the differences from the expected state.
  package func differences(from state: ModelState) -> String {
    var lines: [String] = []
    for (key, expected) in state.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
      let name = Self.name(key)
      let isExpired = expected.hasExpired(now)
      switch entries[key] {
      case nil: if !isExpired { lines.append("\(name) is lost") }
      case _? where isExpired: lines.append("\(name) is there although it has expired")
      case let found?:
        if !Self.isEqual(found, expected) {
          lines.append(
            "\(name) has \(found.value.count) bytes of version \(found.info.version) instead of "
              + "\(expected.value.count) of \(expected.version.map { "\($0)" } ?? "a new one")")
        }
      }
    }
    for key in entries.keys where state[key] == nil {
      lines.append("\(Self.name(key)) should not be there")
    }
    return lines.isEmpty ? "the same" : lines.joined(separator: "; ")
  }

  private static func name(_ key: [UInt8]) -> String {
    String(decoding: key.prefix(20), as: UTF8.self)
  }
}
