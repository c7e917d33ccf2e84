/// The result of a salvage: what it copied, what it could not copy, and what may be wrong with the
/// copy.
public struct SalvageReport: Sendable, Hashable {
  /// How far the manifest could be used.
  public enum ManifestState: String, Sendable, Hashable {
    /// It was sound, and decided what counts.
    case used
    /// There was none.
    case missing
    /// It was unreadable or damaged, so salvage ignored it.
    case damaged
  }

  /// A range of a file that could not be interpreted.
  public struct Loss: Sendable, Hashable, CustomStringConvertible {
    /// The file's name in the store's directory.
    public var file: String
    /// The bytes, counted from the start of the file.
    public var range: Range<Int>
    /// What is wrong with them.
    public var cause: Corruption.Cause
    /// The key of the value, or `nil` if it is unknown.
    public var key: [UInt8]?

    package init(
      file: String, range: Range<Int>, cause: Corruption.Cause, key: [UInt8]? = nil
    ) {
      self.file = file
      self.range = range
      self.cause = cause
      self.key = key
    }

    /// File, bytes and cause in one line, without the key.
    public var description: String {
      "\(file) from offset \(range.lowerBound) to \(range.upperBound): \(cause)"
    }
  }

  /// How the damage may have affected the copied entries. A minor version may add cases.
  public enum Warning: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// Records were lost with their keys. Each may have been a newer value, or the removal, of a
    /// copied key.
    case olderValuesMayBeBack
    /// Without a manifest, salvage cannot tell what was removed as a whole or what a recovery
    /// discarded.
    case removedDataMayBeBack
    /// The order of some records was found without their sequence numbers, so all entries have new
    /// versions.
    case versionsChanged
    /// The times of some writes were lost; those entries count as written now.
    case writtenTimesLost
    /// There is no file LOCK, so a process may have been writing.
    case notLocked
    /// The directory has segments that the manifest does not list. They were left out.
    case unlistedSegments

    /// The warning in words, which later versions may change; `rawValue` is stable.
    public var description: String {
      switch self {
      case .olderValuesMayBeBack:
        "lost records may have been newer values or removals: older values may be back"
      case .removedDataMayBeBack:
        "without a manifest, removed entries and writes that a recovery had discarded may be back"
      case .versionsChanged: "the entries have new versions"
      case .writtenTimesLost: "entries of a segment with a damaged header count as written now"
      case .notLocked: "there was no file LOCK to keep writers away"
      case .unlistedSegments: "segments that the manifest does not know were left out"
      }
    }
  }

  /// Copied entries, including those whose lifetime has ended.
  public var entryCount: Int = 0
  /// Bytes of their keys, metadata and values.
  public var byteCount: Int = 0
  /// Known keys whose newest value is unknown: they were left out, with their older values.
  public var lostKeyCount: Int = 0
  /// Total bytes that could not be interpreted.
  public var lostByteCount: Int = 0
  /// The number of such ranges.
  public var lossCount: Int = 0
  /// The first 1,000 of them.
  public var losses: [Loss] = []
  /// Bytes at the end of the log of a store that was not closed; opening it discards them too.
  public var tornByteCount: Int = 0
  /// How far the manifest could be used.
  public var manifest: ManifestState = .used
  /// What may be wrong with the copy. If there is any warning, or the copy is not complete, the marks
  /// of removed tags in a cache cannot be trusted any more: entries that
  /// `DiskCache.removeAll(tagged:)` has removed may be back.
  public var warnings: [Warning] = []

  /// Whether the copy has everything that may have been acknowledged: no loss, no key without its
  /// newest value, a usable manifest, no unlisted segment, and no torn bytes at the end of the log.
  ///
  /// Opening the store discards torn bytes too. Most often they come from a write that a crash cut
  /// short, but damage to the last write looks the same.
  public var isComplete: Bool {
    lossCount == 0 && lostKeyCount == 0 && manifest == .used && tornByteCount == 0
      && !warnings.contains(.unlistedSegments)
  }

  package init() {}
}
