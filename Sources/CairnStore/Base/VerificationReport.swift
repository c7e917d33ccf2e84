/// What a check of every byte of a store's files found.
public struct VerificationReport: Sendable, Hashable {
  /// Records that are sound: head and value. Tombstones and extensions, which have no value, count too.
  public var recordCount: Int = 0
  /// Bytes read.
  public var byteCount: Int = 0
  /// If the store was not closed, the bytes at the end of its log that opening it discards.
  public var tornByteCount: Int = 0
  /// All that is wrong.
  public var errors: [Corruption] = []
  /// The keys of those errors that are damaged values.
  public var keys: [Corruption: [UInt8]] = [:]
  /// Of the damaged values those that no read asks for any more: a later record of the key replaces or removes
  /// them. A compaction drops them.
  public var replaced: Set<Corruption> = []

  package init() {}
}

/// How far a check of every byte has come.
public struct VerificationProgress: Sendable, Hashable {
  /// Bytes that were read.
  public var byteCount: Int
  /// Bytes that there are. Of a store that was not closed, this grows when the end of its log is found.
  public var totalByteCount: Int

  package init(byteCount: Int, totalByteCount: Int) {
    self.byteCount = byteCount
    self.totalByteCount = totalByteCount
  }
}
