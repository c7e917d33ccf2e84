/// How far a removal of all has come. The entries are gone before the first file is.
///
/// In a store of class `.process` or `.interval`, a file may stay for a moment after it was counted: until the
/// removal is on disk.
public struct RemoveAllProgress: Sendable, Hashable {
  /// Files that are out of the store.
  public var fileCount: Int
  /// Files that will be.
  public var totalFileCount: Int

  /// Makes a step of a removal.
  ///
  /// - Parameters: as the properties of these names.
  public init(fileCount: Int, totalFileCount: Int) {
    self.fileCount = fileCount
    self.totalFileCount = totalFileCount
  }
}

/// What a call removed that removes many entries.
public struct RemovalSummary: Sendable, Hashable {
  /// How many entries went.
  public var count: Int = 0
  /// How many live bytes they took in the log, with their keys and metadata.
  public var byteCount: Int = 0
  /// Entries that were looked at and stay because the head of their record is damaged: their keys
  /// are not known. Reads of them throw `corrupt`.
  public var damagedCount: Int = 0

  /// Makes a summary.
  ///
  /// - Parameters:
  ///   - count: how many entries went.
  ///   - byteCount: how many live bytes they took in the log.
  ///   - damagedCount: entries that stay since the head of their record is damaged.
  public init(count: Int = 0, byteCount: Int = 0, damagedCount: Int = 0) {
    self.count = count
    self.byteCount = byteCount
    self.damagedCount = damagedCount
  }
}
