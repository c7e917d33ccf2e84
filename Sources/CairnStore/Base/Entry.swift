/// Information about a key, without its value.
public struct EntryInfo: Sendable, Hashable {
  /// The sequence number of the write that made the entry. Every write to the store gets a higher
  /// version than all earlier writes. No version is 0.
  public var version: UInt64
  /// Bytes of the value.
  public var valueByteCount: Int
  /// When the entry was written, to the second.
  public var written: Timestamp
  /// When the entry was last read or written, accurate to 1 % of the time since then.
  /// Docs/Durability.md says when access times are saved.
  public var accessed: Timestamp
  /// When the entry's lifetime ends, or `nil` if it has none.
  public var expires: Timestamp?
  /// How long the entry may go without an access, or `nil` for no limit.
  public var idleLimit: Duration?
  /// The cost given to the entry, or `nil`. `Int.max` if the cost on disk is larger.
  public var cost: Int?
  /// Bytes of metadata.
  public var metadataByteCount: Int

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
    self.cost = cost
    self.metadataByteCount = metadataByteCount
  }
}

/// A key and its value, with its metadata and all information about it, from one read.
public struct Entry: Sendable, Hashable {
  /// The key, 1 to 65,535 bytes.
  public var key: [UInt8]
  /// A copy of the value.
  public var value: [UInt8]
  /// The caller's bytes stored with the value; empty if there are none.
  public var metadata: [UInt8]
  /// Information about the key: version, times, sizes, cost.
  public var info: EntryInfo

  /// The same as `info.version`.
  public var version: UInt64 { info.version }

  package init(key: [UInt8], value: [UInt8], metadata: [UInt8], info: EntryInfo) {
    self.key = key
    self.value = value
    self.metadata = metadata
    self.info = info
  }
}

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
