import Cairn

/// The benchmark's protocol for stores, for Cairn and its peers.
///
/// The methods and their meanings are those of Cairn's `Store`, with bytes as `RawSpan`. They are
/// safe to call from any thread, but writes may overlap only if `abilities` contains
/// `concurrentWrites`.
protocol KeyValueStore: AnyObject, Sendable {
  /// The store's name on the command line and in reports.
  static var name: String { get }
  static var abilities: StoreAbilities { get }

  /// Opens the store in the directory `path`, which is created if it does not exist.
  init(at path: String, options: StoreOptions) throws

  /// A copy of the value, or `nil` if the key has none.
  func value(forKey key: RawSpan) throws -> [UInt8]?
  /// Passes the value's bytes to `body`, in place if the store can.
  func withValue<R>(forKey key: RawSpan, _ body: (RawSpan) throws -> R) throws -> R?
  /// The values of many keys, in the order of the keys.
  func values(forKeys keys: some Collection<some ByteSource>) throws -> [[UInt8]?]

  func setValue(_ value: RawSpan, forKey key: RawSpan) throws
  /// Writes many values in one call, atomically if the store can.
  func setValues<Key: ByteSource, Value: ByteSource>(
    _ pairs: some Sequence<(key: Key, value: Value)>
  ) throws
  /// Returns whether there was a value.
  @discardableResult
  func removeValue(forKey key: RawSpan) throws -> Bool

  /// Reclaims the space of overwritten and removed values; does nothing if the store does so by
  /// itself or not at all.
  func compact() throws

  /// The memory of the key lookup structure, in bytes, or `nil` if the store does not report it.
  var indexByteCount: Int? { get throws }

  /// Closes the store. Every later call is an error.
  func close() throws
}

/// Abilities that not every store has. Rows that need an ability skip stores without it.
struct StoreAbilities: OptionSet, Sendable {
  var rawValue: UInt8
  static let zeroCopyReads = StoreAbilities(rawValue: 1 << 0)
  static let durableWrites = StoreAbilities(rawValue: 1 << 1)
  static let concurrentWrites = StoreAbilities(rawValue: 1 << 2)
  /// Another process can reopen the store.
  static let reopening = StoreAbilities(rawValue: 1 << 3)
  /// A call reclaims space, concurrently with reads and writes.
  static let compaction = StoreAbilities(rawValue: 1 << 4)
  /// Evicts values to stay within a limit on its bytes on disk.
  static let limits = StoreAbilities(rawValue: 1 << 5)
}

/// The options for opening a store. Expected numbers are hints for stores that cannot grow or need
/// preallocated space.
struct StoreOptions: Sendable {
  /// What an acknowledged write survives.
  var durability: Durability = .process
  /// When Cairn checks values. The peers have no such choice.
  var verifiesEveryRead = true
  /// The limit on bytes on disk, for stores with the ability `limits`.
  var diskByteLimit: Int?
  var expectedKeyCount = 0
  var expectedByteCount = 0
}

extension KeyValueStore {
  func compact() throws {}

  var indexByteCount: Int? { nil }

  func withValue<R>(forKey key: RawSpan, _ body: (RawSpan) throws -> R) throws -> R? {
    guard let value = try value(forKey: key) else { return nil }
    return try value.withBytes(body)
  }

  func values(forKeys keys: some Collection<some ByteSource>) throws -> [[UInt8]?] {
    var values: [[UInt8]?] = []
    values.reserveCapacity(keys.count)
    for key in keys {
      values.append(try key.withBytes { (key) throws in try value(forKey: key) })
    }
    return values
  }

  func setValues<Key: ByteSource, Value: ByteSource>(
    _ pairs: some Sequence<(key: Key, value: Value)>
  ) throws {
    for (key, value) in pairs {
      try key.withBytes { (key) throws in
        try value.withBytes { (value) throws in try setValue(value, forKey: key) }
      }
    }
  }
}
