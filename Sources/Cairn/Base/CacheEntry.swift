public import CairnStore

/// Information about one key of a cache, without its value.
public struct CacheEntryInfo: Sendable, Hashable {
  /// The version of the entry. Every write to the cache gets a higher version than all earlier
  /// writes. No version is 0.
  public var version: UInt64
  /// The cost set with the entry, or else the cost that the cache computed.
  public var cost: Int
  /// When the entry was written. Accurate to the second for entries on disk.
  public var written: Timestamp
  /// When the entry was last read or written.
  public var accessed: Timestamp
  /// When the entry's lifetime ends, or `nil` if it has none.
  public var expires: Timestamp?
  /// How long the entry may go without an access, or `nil` for no limit.
  public var idleLimit: Duration?
  /// The size of the value on disk in bytes, or `nil` from a cache in memory.
  public var valueByteCount: Int?

  /// Makes entry information.
  ///
  /// - Parameters: see the properties of the same names.
  package init(
    version: UInt64, cost: Int, written: Timestamp, accessed: Timestamp, expires: Timestamp?,
    idleLimit: Duration?, valueByteCount: Int? = nil
  ) {
    self.version = version
    self.cost = cost
    self.written = written
    self.accessed = accessed
    self.expires = expires
    self.idleLimit = idleLimit
    self.valueByteCount = valueByteCount
  }
}

/// A key and its value, with the metadata and all information about the key, from one read.
public struct CacheEntry<Key: Sendable, Value: Sendable>: Sendable {
  /// The key, as the key coder decoded it.
  public var key: Key
  /// The value.
  public var value: Value
  /// Information about the key: version, cost, times, sizes.
  public var info: CacheEntryInfo
  /// The bytes that the caller stored with the value. Always empty from a cache in memory.
  public var metadata: [UInt8]

  /// The same as `info.version`.
  public var version: UInt64 { info.version }

  /// Makes an entry.
  ///
  /// - Parameters: see the properties of the same names.
  @inlinable
  package init(key: Key, value: Value, info: CacheEntryInfo, metadata: [UInt8] = []) {
    self.key = key
    self.value = value
    self.info = info
    self.metadata = metadata
  }
}

extension CacheEntry: Equatable where Key: Equatable, Value: Equatable {}
extension CacheEntry: Hashable where Key: Hashable, Value: Hashable {}
