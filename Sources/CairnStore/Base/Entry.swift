/// What a store knows about a key besides its value.
public struct EntryInfo: Sendable, Hashable {
  /// The version: the sequence number of the write that made the entry. It grows with every
  /// write to the store and is never 0.
  public var version: UInt64
  /// Bytes of the value.
  public var valueByteCount: Int
  /// When it was written, to the second.
  public var written: Timestamp
  /// When it was last read or written, within 1 % of how long ago that is. A close keeps it; what a
  /// crash keeps of it is said under Durability.
  public var accessed: Timestamp
  /// When its lifetime ends, or `nil` where it has none.
  public var expires: Timestamp?
  /// How long it may go without an access, or `nil` where that is not limited.
  public var idleLimit: Duration?
  /// The cost it was given, or `nil`; `Int.max` where it is more on disk.
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

/// A key's value with everything the store knows about it, from one read.
public struct Entry: Sendable, Hashable {
  /// The key, 1 to 65,535 bytes.
  public var key: [UInt8]
  /// The value, copied out.
  public var value: [UInt8]
  /// The bytes that were stored beside the value; empty where there are none.
  public var metadata: [UInt8]
  /// What the store knows of the key: version, times, sizes, cost.
  public var info: EntryInfo

  /// As `info.version`.
  public var version: UInt64 { info.version }

  package init(key: [UInt8], value: [UInt8], metadata: [UInt8], info: EntryInfo) {
    self.key = key
    self.value = value
    self.metadata = metadata
    self.info = info
  }
}

/// What a compare-and-set found.
public enum CompareAndSetResult: Sendable, Hashable {
  /// The version was as expected; the write happened and has this version.
  case stored(version: UInt64)
  /// The key has another version, or `nil` where it is absent; nothing was written.
  case mismatch(current: UInt64?)
}

extension CompareAndSetResult {
  /// The version that was written, where nothing was expected.
  @usableFromInline
  package var version: UInt64 {
    guard case .stored(let version) = self else {
      preconditionFailure("nothing was expected, so nothing can differ")
    }
    return version
  }
}

/// What an iteration does after a visit.
public enum Visit: Sendable, Hashable {
  /// It goes on with the next.
  case next
  /// It ends.
  case stop
}
