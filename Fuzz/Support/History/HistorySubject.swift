package import CairnStore

/// The subject of histories: a store or a cache. Each value is an array that shows its number.
package protocol HistorySubject: Sendable {
  /// - Returns: the version, or 0 if it is unknown.
  func set(
    _ value: [UInt8], forKey key: [UInt8], ending: HistoryOperation.Ending, durability: Durability
  ) throws -> UInt64
  /// The guarantee for `change`.
  var unityOfChanges: HistoryCall.Unity { get }
  /// The guarantee for `removeAll`.
  var unityOfRemovalOfAll: HistoryCall.Unity { get }
  /// The guarantee for `getAll`.
  func unityOfReads(choice: Int) -> HistoryCall.Unity
  /// Makes all changes in one call; `nil` removes a key.
  func change(_ changes: [(key: [UInt8], value: [UInt8]?)], durability: Durability) throws
  /// The value and its version, 0 if it is unknown.
  func get(_ key: [UInt8]) throws -> (value: [UInt8], version: UInt64)?
  /// The values of the keys at one moment, or each at its own moment, during the call.
  func getAll(_ keys: [[UInt8]], choice: Int) throws -> [(value: [UInt8], version: UInt64)?]
  func remove(_ key: [UInt8]) throws -> Bool
  func take(_ key: [UInt8]) throws -> [UInt8]?
  /// Extends the value's lifetime beyond the time that passes.
  func setLifetime(_ key: [UInt8]) throws -> Bool
  func removeAll() throws
  func compareAndSet(
    _ value: [UInt8], forKey key: [UInt8], expecting version: UInt64?
  ) throws -> CompareAndSetResult
  func compareAndRemove(forKey key: [UInt8], expecting version: UInt64) throws -> Bool
  /// An action that no reader may notice.
  func keepHouse(choice: Int) throws
}

extension HistoryOperation.Ending {
  /// The lifetime of a value with this ending. `atOnce` and `never` have two forms each.
  package func lifetime(_ value: [UInt8]) -> Lifetime {
    switch self {
    case .never: value.count.isMultiple(of: 2) ? .standard : .after(HistoryPlan.time * 1000)
    case .soon: .after(HistoryPlan.time / 2)
    case .whenIdle: .standard
    case .atOnce:
      value.count.isMultiple(of: 2)
        ? .milliseconds(-1000) : .until(Timestamp(millisecondsSinceEpoch: 0))
    }
  }

  package var idleLimit: Duration? { self == .whenIdle ? HistoryPlan.time / 2 : nil }
}

/// A store. Every other write is made by a task.
package struct StoreSubject: HistorySubject {
  package let store: Store

  /// Whether the store treats batches as large.
  private let hasLargeBatches: Bool

  package init(_ store: Store, hasLargeBatches: Bool = false) {
    self.store = store
    self.hasLargeBatches = hasLargeBatches
  }

  /// Like `configuration`, but every batch counts as large.
  package static var configurationOfLargeBatches: StoreConfiguration {
    var configuration = configuration
    configuration.asideOperationCount = 3
    return configuration
  }

  /// Small segments, so that they roll and are compacted.
  package static var configuration: StoreConfiguration {
    var configuration = StoreConfiguration()
    configuration.log = .silent
    configuration.segmentByteLimit = 64 << 10
    configuration.deadByteFloor = 0
    configuration.checkpointByteThreshold = 32 << 10
    configuration.checkpointRecordThreshold = 0
    configuration.durability = .process
    return configuration
  }

  package var unityOfChanges: HistoryCall.Unity { hasLargeBatches ? .arriving : .together }
  package var unityOfRemovalOfAll: HistoryCall.Unity { .together }

  /// An iteration is not a snapshot.
  package func unityOfReads(choice: Int) -> HistoryCall.Unity {
    choice.isMultiple(of: 2) ? .apart : .atOnce
  }

  package func set(
    _ value: [UInt8], forKey key: [UInt8], ending: HistoryOperation.Ending, durability: Durability
  ) throws -> UInt64 {
    let options = EntryOptions(lifetime: ending.lifetime(value), idleLimit: ending.idleLimit)
    if isForTask(value) {
      return try inTask { [store] in
        try await store.setValue(value, forKey: key, options: options, durability: durability)
      }
    }
    return try store.setValue(value, forKey: key, options: options, durability: durability)
  }

  private func isForTask(_ bytes: [UInt8]) -> Bool { (bytes.last ?? 0).isMultiple(of: 2) }

  package func change(
    _ changes: [(key: [UInt8], value: [UInt8]?)], durability: Durability
  ) throws {
    @Sendable func fill(_ batch: inout Batch) throws {
      for (key, value) in changes {
        if let value {
          try batch.setValue(value, forKey: key)
        } else {
          try batch.removeValue(forKey: key)
        }
      }
    }
    if isForTask(changes.first?.key ?? []) {
      try inTask { [store] in try await store.write(durability: durability, fill) }
    } else {
      try store.write(durability: durability, fill)
    }
  }

  package func get(_ key: [UInt8]) throws -> (value: [UInt8], version: UInt64)? {
    try store.entry(forKey: key).map { ($0.value, $0.info.version) }
  }

  package func getAll(
    _ keys: [[UInt8]], choice: Int
  ) throws -> [(value: [UInt8], version: UInt64)?] {
    var found: [[UInt8]: (value: [UInt8], version: UInt64)] = [:]
    func visit(_ entry: ByteEntry) throws -> Visit {
      guard found.updateValue((entry.value, entry.info.version), forKey: entry.key) == nil else {
        throw FuzzFailure("an iteration returned a key twice")
      }
      return .next
    }
    if unityOfReads(choice: choice) == .apart {
      try store.forEachEntry(visit)
    } else {
      let snapshot = try store.snapshot()
      try snapshot.forEachEntry(visit)
      snapshot.close()
      guard found.values.allSatisfy({ $0.version <= snapshot.version }) else {
        throw FuzzFailure("a snapshot shows a newer value")
      }
    }
    return keys.map { found[$0] }
  }

  package func remove(_ key: [UInt8]) throws -> Bool {
    if isForTask(key) {
      return try inTask { [store] in try await store.removeValue(forKey: key) }
    }
    return try store.removeValue(forKey: key)
  }
  package func removeAll() throws { try store.removeAll() }

  package func take(_ key: [UInt8]) throws -> [UInt8]? {
    while let entry = try store.entry(forKey: key) {
      if try store.compareAndRemove(forKey: key, expecting: entry.info.version) {
        return entry.value
      }
    }
    return nil
  }

  package func setLifetime(_ key: [UInt8]) throws -> Bool {
    try store.setLifetime(.after(HistoryPlan.time * 1000), forKey: key)
  }

  package func compareAndSet(
    _ value: [UInt8], forKey key: [UInt8], expecting version: UInt64?
  ) throws -> CompareAndSetResult {
    if isForTask(value) {
      return try inTask { [store] in
        try await store.compareAndSet(value, forKey: key, expecting: version)
      }
    }
    return try store.compareAndSet(value, forKey: key, expecting: version)
  }

  package func compareAndRemove(forKey key: [UInt8], expecting version: UInt64) throws -> Bool {
    try store.compareAndRemove(forKey: key, expecting: version)
  }

  package func keepHouse(choice: Int) throws {
    switch choice % 5 {
    case 0: try store.compact()
    case 1: try store.checkpoint()
    case 2: try store.sync()
    case 3: try store.maintain()
    default: try store.trim(.expired)
    }
  }
}
