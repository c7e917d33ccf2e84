/// Information about a key, without its value.
public struct EntryInfo: Sendable, Hashable {
  /// The sequence number of the write that made the entry. Every write to the store or cache gets a
  /// higher version than all earlier writes. No version is 0.
  public var version: UInt64
  /// Bytes of the value on disk; 0 in a cache in memory.
  public var valueByteCount: Int
  /// When the entry was written, to the second on disk.
  public var written: Timestamp
  /// When the entry was last read or written, accurate on disk to 1 % of the time since then.
  /// Docs/Durability.md says when access times are saved.
  public var accessed: Timestamp
  /// When the entry's lifetime ends, or `nil` if it has none.
  public var expires: Timestamp?
  /// How long the entry may go without an access, or `nil` for no limit.
  public var idleLimit: Duration?
  /// The cost that a write gave the entry. `Int.max` if the cost on disk is larger.
  @usableFromInline package var givenCost: Int?
  /// Bytes of metadata on disk, which include the tags of a cache.
  public var metadataByteCount: Int

  /// The cost given to the entry, or else the one that a cache in memory computed, or on disk the
  /// bytes of the value.
  public var cost: Int { givenCost ?? valueByteCount }

  package init(
    version: UInt64, valueByteCount: Int, written: Timestamp, accessed: Timestamp,
    expires: Timestamp?, idleLimit: Duration?, cost: Int?, metadataByteCount: Int
  ) {
    self.version = version
    self.valueByteCount = valueByteCount
    self.written = written
    self.accessed = accessed
    self.expires = expires
    self.idleLimit = idleLimit
    givenCost = cost
    self.metadataByteCount = metadataByteCount
  }
}

/// A key and its value, with the metadata and all information about the key, from one read.
///
/// A ``/CairnStore/Store`` gives `Entry<[UInt8], [UInt8]>`.
public struct Entry<Key: Sendable, Value: Sendable>: Sendable {
  /// The key.
  public var key: Key
  /// The value.
  public var value: Value
  /// The caller's bytes stored with the value; empty if there are none, and in a cache in memory.
  public var metadata: [UInt8]
  /// The tags of an entry of a cache on disk, in no particular order; otherwise empty.
  public var tags: [String]
  /// Information about the key: version, times, sizes, cost.
  public var info: EntryInfo

  /// The same as `info.version`.
  public var version: UInt64 { info.version }

  @inlinable
  package init(
    key: Key, value: Value, metadata: [UInt8] = [], tags: [String] = [], info: EntryInfo
  ) {
    self.key = key
    self.value = value
    self.metadata = metadata
    self.tags = tags
    self.info = info
  }
}

extension Entry: Equatable where Key: Equatable, Value: Equatable {}
extension Entry: Hashable where Key: Hashable, Value: Hashable {}

/// An entry of a store.
@usableFromInline package typealias ByteEntry = Entry<[UInt8], [UInt8]>

/// The result of a compare-and-set.
public enum CompareAndSetResult: Sendable, Hashable {
  /// The version matched, and the new entry has this version.
  case stored(version: UInt64)
  /// Nothing was written. `current` is the key's version, or `nil` if the key is absent.
  case mismatch(current: UInt64?)
}

extension CompareAndSetResult {
  /// The version that was written, for a call without an expected version.
  @usableFromInline
  package var version: UInt64 {
    guard case .stored(let version) = self else {
      preconditionFailure("nothing was expected, so nothing can differ")
    }
    return version
  }
}

/// Whether an iteration continues after a visit.
public enum Visit: Sendable, Hashable {
  /// Continue with the next entry.
  case next
  /// End the iteration.
  case stop
}
