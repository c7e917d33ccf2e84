import Cairn

/// What the benchmark asks of a store: the protocol under which Cairn and its peers stand side
/// by side.
///
/// The methods and their meanings are those of Cairn's `Store`, with bytes as `RawSpan`. All of
/// them may be called from any thread, writes where `abilities` says so.
protocol KeyValueStore: AnyObject, Sendable {
  /// Its name on the command line and in reports.
  static var name: String { get }
  static var abilities: StoreAbilities { get }

  /// Opens the store in the directory `path`, which is made where it is missing.
  init(at path: String, options: StoreOptions) throws

  /// The value, copied out, or `nil` where the key has none.
  func value(forKey key: RawSpan) throws -> [UInt8]?
  /// Hands the value's bytes to `body`, in place where the store can.
  func withValue<R>(forKey key: RawSpan, _ body: (RawSpan) throws -> R) throws -> R?
  /// The values of many keys, in their order.
  func values(forKeys keys: some Collection<some ByteSource>) throws -> [[UInt8]?]

  func setValue(_ value: RawSpan, forKey key: RawSpan) throws
  /// Writes many values in one call, atomically where the store can.
  func setValues<Key: ByteSource, Value: ByteSource>(
    _ pairs: some Sequence<(key: Key, value: Value)>
  ) throws
  /// Returns whether there was a value.
  @discardableResult
  func removeValue(forKey key: RawSpan) throws -> Bool

  /// Gives back the space of what was overwritten or removed; where the store does so by itself or
  /// not at all, nothing.
  func compact() throws

  /// Bytes of memory that what finds the keys takes; `nil` where the store does not tell.
  var indexByteCount: Int? { get throws }

  /// Every later call is an error.
  func close() throws
}

/// What not every store can do; a row that needs it is left out for the others.
struct StoreAbilities: OptionSet, Sendable {
  var rawValue: UInt8
  static let zeroCopyReads = StoreAbilities(rawValue: 1 << 0)
  static let durableWrites = StoreAbilities(rawValue: 1 << 1)
  static let concurrentWrites = StoreAbilities(rawValue: 1 << 2)
  /// Its contents can be opened again by another process.
  static let reopening = StoreAbilities(rawValue: 1 << 3)
  /// Space is given back by a call, beside reads and writes.
  static let compaction = StoreAbilities(rawValue: 1 << 4)
}

/// How a store is opened. What is expected is a hint for stores that cannot grow or want space
/// made for them.
struct StoreOptions: Sendable {
  /// What an acknowledged write survives.
  var durability: Durability = .process
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
