public import CairnStore

/// Information about one key of a cache, without its value.
public struct CacheEntryInfo: Sendable, Hashable {
  /// The version. It grows with every write to the cache and is never 0.
  public var version: UInt64
  /// The cost given to the entry, or else the cost that the cache computes.
  public var cost: Int
  /// When it was written; on disk, to the second.
  public var written: Timestamp
  /// When it was last read or written.
  public var accessed: Timestamp
  /// When its lifetime ends, or `nil` if it has none.
  public var expires: Timestamp?
  /// How long it may go without an access, or `nil` for no limit.
  public var idleLimit: Duration?
  /// Bytes of the value on disk, or `nil` from a cache in memory.
  public var valueByteCount: Int?

  /// Makes entry information, so that a custom cache can return it.
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

/// A key's value with everything that a cache knows about it, from one read.
public struct CacheEntry<Key: Sendable, Value: Sendable>: Sendable {
  /// The key, as the key coder decoded it.
  public var key: Key
  /// The value.
  public var value: Value
  /// Information about the key: version, cost, times, sizes.
  public var info: CacheEntryInfo
  /// The bytes stored with the value. Empty if none were given, and from a cache in memory.
  public var metadata: [UInt8]

  /// The same as `info.version`.
  public var version: UInt64 { info.version }

  /// Makes an entry, so that a custom cache can return it.
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
