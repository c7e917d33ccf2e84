import Cairn

/// Cairn under the benchmark's protocol, with the default configuration except for durability and
/// verification.
final class CairnStoreAdapter: KeyValueStore {
  static let name = "cairn"
  static let abilities: StoreAbilities = [
    .zeroCopyReads, .durableWrites, .concurrentWrites, .reopening, .compaction, .limits,
  ]

  private let store: Store

  init(at path: String, options: StoreOptions) throws {
    var configuration = StoreConfiguration()
    configuration.durability = options.durability
    configuration.verifiesEveryRead = options.verifiesEveryRead
    configuration.diskByteLimit = options.diskByteLimit
    store = try Store(path: path, configuration: configuration)
  }

  func value(forKey key: RawSpan) throws -> [UInt8]? {
    try store.value(forKey: key)
  }

  func withValue<R>(forKey key: RawSpan, _ body: (RawSpan) throws -> R) throws -> R? {
    try store.withValue(forKey: key, body)
  }

  func values(forKeys keys: some Collection<some ByteSource>) throws -> [[UInt8]?] {
    try store.values(forKeys: keys)
  }

  func setValue(_ value: RawSpan, forKey key: RawSpan) throws {
    try store.setValue(value, forKey: key)
  }

  func setValues<Key: ByteSource, Value: ByteSource>(
    _ pairs: some Sequence<(key: Key, value: Value)>
  ) throws {
    try store.write { batch in
      for (key, value) in pairs { try batch.setValue(value, forKey: key) }
    }
  }

  func removeValue(forKey key: RawSpan) throws -> Bool {
    try store.removeValue(forKey: key)
  }

  func compact() throws {
    try store.compact()
  }

  var indexByteCount: Int? {
    get throws { try store.statistics().indexByteCount }
  }

  func close() throws {
    try store.close()
  }
}
