/// What a salvage copied, what it could not, and what may be wrong with the copy.
public struct SalvageReport: Sendable, Hashable {
  /// What the manifest was good for.
  public enum ManifestState: String, Sendable, Hashable {
    /// It was sound, and decided what counts.
    case used
    /// There was none.
    case missing
    /// It could not be read or was not sound, so it was not trusted in anything.
    case damaged
  }

  /// A stretch of a file that could not be made sense of.
  public struct Loss: Sendable, Hashable, CustomStringConvertible {
    /// The file's name in the store's directory.
    public var file: String
    /// The bytes, from the start of the file.
    public var range: Range<Int>
    /// What is wrong with them.
    public var cause: Corruption.Cause
    /// The key whose value it was, or `nil` where that is not known.
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

  /// What the damage may have done to the entries that were copied. A minor version may add cases.
  public enum Warning: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// Records were lost with their keys. Each may have been a newer value of a key that was
    /// copied, or its removal.
    case olderValuesMayBeBack
    /// Without a manifest it is not known what was removed as a whole, nor what a recovery had
    /// discarded.
    case removedDataMayBeBack
    /// The order of some records was found without the numbers that give it, so all entries
    /// have new versions.
    case versionsChanged
    /// The time of some writes was lost; those entries count as written now.
    case writtenTimesLost
    /// There is no file LOCK, so it is not known that no process was writing.
    case notLocked
    /// Segments lie in the directory that the manifest does not know. They were left out.
    case unlistedSegments

    /// The warning in words, which later versions may put otherwise; `rawValue` stays as it is.
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

  /// Entries that were copied, those included whose lifetime has ended.
  public var entryCount: Int = 0
  /// Bytes of their keys, metadata and values.
  public var byteCount: Int = 0
  /// Keys that are known and whose newest value is not: they were left out, older values and all.
  public var lostKeyCount: Int = 0
  /// Bytes that could not be made sense of, in all.
  public var lostByteCount: Int = 0
  /// How many stretches these are.
  public var lossCount: Int = 0
  /// The first 1,000 of them.
  public var losses: [Loss] = []
  /// Bytes at the end of the log of a store that was not closed, which opening it discards too.
  public var tornByteCount: Int = 0
  /// What the manifest was good for.
  public var manifest: ManifestState = .used
  /// What may be wrong with the copy. Where there is any, or it is not complete, what a cache knows of removed tags cannot be
  /// trusted any more: entries that `DiskCache.removeAll(tagged:)` has removed may be back.
  public var warnings: [Warning] = []

  /// Whether nothing was left out that a write may have been told was stored: no loss, no key without its
  /// newest value, a manifest to go by, no segment that it does not know, and no torn bytes at the end of the log.
  ///
  /// Opening the store discards torn bytes too, and most often they are of a write that a crash cut short. But
  /// damage to the last write looks the same.
  public var isComplete: Bool {
    lossCount == 0 && lostKeyCount == 0 && manifest == .used && tornByteCount == 0
      && !warnings.contains(.unlistedSegments)
  }

  package init() {}
}

/// How far a salvage is.
public struct SalvageProgress: Sendable, Hashable {
  /// What a salvage is doing.
  public enum Phase: Sendable, Hashable {
    /// Records are looked for; the bytes are those of the store's files.
    case searching
    /// Values are copied; the bytes are those of keys, metadata and values.
    case copying
  }

  /// The phase that it is in.
  public var phase: Phase
  /// Bytes that are done in this phase.
  public var byteCount: Int
  /// Entries that were copied.
  public var entryCount: Int

  package init(phase: Phase, byteCount: Int, entryCount: Int) {
    self.phase = phase
    self.byteCount = byteCount
    self.entryCount = entryCount
  }
}
