package import CairnStore

/// What histories are made with: a store, or a cache. Values are arrays that tell their number.
package protocol HistorySubject: Sendable {
  /// - Returns: the version; 0 where it is not told.
  func set(_ value: [UInt8], forKey key: [UInt8], durability: Durability) throws -> UInt64
  /// All in one step; `nil` removes.
  func change(_ changes: [(key: [UInt8], value: [UInt8]?)], durability: Durability) throws
  /// The value and its version, 0 where it is not told.
  func get(_ key: [UInt8]) throws -> (value: [UInt8], version: UInt64)?
  /// What the keys hold at one moment, or each at a moment of its own, in the course of the call.
  func getAll(_ keys: [[UInt8]], choice: Int) throws -> [(value: [UInt8], version: UInt64)?]
  func remove(_ key: [UInt8]) throws -> Bool
  func removeAll() throws
  func compareAndSet(
    _ value: [UInt8], forKey key: [UInt8], expecting version: UInt64?
  ) throws -> CompareAndSetResult
  func compareAndRemove(_ key: [UInt8], expecting version: UInt64) throws -> Bool
  /// Something that no reader may notice.
  func keepHouse(choice: Int) throws
}

/// A store.
package struct StoreSubject: HistorySubject {
  package let store: Store

  package init(_ store: Store) { self.store = store }

  /// Small segments, so that they roll and are compacted.
  package static var configuration: StoreConfiguration {
    var configuration = StoreConfiguration()
    configuration.segmentByteLimit = 64 << 10
    configuration.deadByteFloor = 0
    configuration.checkpointByteThreshold = 32 << 10
    configuration.checkpointRecordThreshold = 0
    configuration.durability = .process
    return configuration
  }

  package func set(
    _ value: [UInt8], forKey key: [UInt8], durability: Durability
  ) throws -> UInt64 {
    try store.setValue(value, forKey: key, durability: durability)
  }

  package func change(
    _ changes: [(key: [UInt8], value: [UInt8]?)], durability: Durability
  ) throws {
    try store.write(durability: durability) { batch in
      for (key, value) in changes {
        if let value {
          try batch.setValue(value, forKey: key)
        } else {
          try batch.removeValue(forKey: key)
        }
      }
    }
  }

  package func get(_ key: [UInt8]) throws -> (value: [UInt8], version: UInt64)? {
    try store.entry(forKey: key).map { ($0.value, $0.info.version) }
  }

  package func getAll(
    _ keys: [[UInt8]], choice: Int
  ) throws -> [(value: [UInt8], version: UInt64)?] {
    var found: [[UInt8]: (value: [UInt8], version: UInt64)] = [:]
    func visit(_ entry: Entry) throws -> Visit {
      guard found.updateValue((entry.value, entry.info.version), forKey: entry.key) == nil else {
        throw FuzzFailure("an iteration gave a key twice")
      }
      return .next
    }
    if choice.isMultiple(of: 2) {
      try store.forEachEntry(visit)
    } else {
      let snapshot = try store.snapshot()
      try snapshot.forEachEntry(visit)
      snapshot.close()
    }
    return keys.map { found[$0] }
  }

  package func remove(_ key: [UInt8]) throws -> Bool { try store.removeValue(forKey: key) }
  package func removeAll() throws { try store.removeAll() }

  package func compareAndSet(
    _ value: [UInt8], forKey key: [UInt8], expecting version: UInt64?
  ) throws -> CompareAndSetResult {
    try store.compareAndSet(value, forKey: key, expecting: version)
  }

  package func compareAndRemove(_ key: [UInt8], expecting version: UInt64) throws -> Bool {
    try store.compareAndRemove(key, expecting: version)
  }

  package func keepHouse(choice: Int) throws {
    switch choice % 6 {
    case 0: try store.compact()
    case 1: try store.checkpoint()
    case 2: try store.sync()
    case 3: try store.maintain()
    case 4: try store.compactByPieces(of: 4 << 10)
    default: try store.removeExpired()
    }
  }
}
