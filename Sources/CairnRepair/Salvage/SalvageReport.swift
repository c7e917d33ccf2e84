public import CairnStore

/// The result of a salvage: the copied entries, the losses, and warnings about the copy.
public struct SalvageReport: Sendable, Hashable {
  /// Whether salvage could use the manifest.
  package enum ManifestState: String, Sendable {
    /// The manifest was sound, and salvage used it.
    case used
    /// The manifest was missing.
    case missing
    /// The manifest was unreadable or damaged, so salvage ignored it.
    case damaged
  }

  /// How the copied entries may differ from the store's.
  package enum Warning: String, Sendable, Hashable, CustomStringConvertible {
    /// Records were lost with their keys. Each may have been a newer value of a copied key, or the
    /// key's removal.
    case olderValuesMayBeBack
    /// The manifest was lost. Without it, salvage cannot tell which entries `removeAll` removed or
    /// a recovery discarded.
    case removedDataMayBeBack
    /// The sequence numbers of some records were lost, so all entries have new versions.
    case versionsChanged
    /// The times of some writes were lost. Their entries count as written now.
    case writtenTimesLost
    /// The file `LOCK` is missing, so another process may have written to the store during the
    /// salvage.
    case notLocked
    /// The directory has segments that the manifest does not list. Salvage left them out.
    case unlistedSegments

    package var description: String {
      switch self {
      case .olderValuesMayBeBack:
        "lost records may have been newer values or removals: older values may have reappeared"
      case .removedDataMayBeBack:
        "without a manifest, removed entries and discarded writes may have reappeared"
      case .versionsChanged: "the entries have new versions"
      case .writtenTimesLost: "entries of a segment with a damaged header count as written now"
      case .notLocked: "the file LOCK was missing, so another process may have been writing"
      case .unlistedSegments: "segments that the manifest does not list were left out"
      }
    }
  }

  /// Copied entries, including those whose lifetime has ended.
  public package(set) var entryCount = 0
  /// Bytes of the copied keys, metadata and values.
  public package(set) var byteCount = 0
  /// Known keys whose newest value is lost. Salvage copies no older values of these keys.
  public package(set) var lostKeyCount = 0
  /// Total bytes that could not be interpreted.
  public package(set) var lostByteCount = 0
  /// The number of ranges that could not be interpreted.
  package var lossCount: Int = 0
  /// The first 1,000 of these ranges.
  public package(set) var losses: [Damage] = []
  /// Unfinished bytes at the end of the log, if the store was not closed. Opening the store
  /// discards them too.
  package var tornByteCount: Int = 0
  /// Whether salvage could use the manifest.
  package var manifest: ManifestState = .used
  package var kinds: [Warning] = []

  /// How the copied entries may differ from the store's, in words. If there is a warning, or the
  /// copy is not complete, entries that `DiskCache.removeAll(tagged:)` removed may reappear.
  public var warnings: [String] { kinds.map(\.description) }

  /// Whether the copy has every write that may have been acknowledged: the manifest was used, no
  /// range, key or segment was lost or left out, and the log has no torn bytes at its end.
  ///
  /// Torn bytes usually come from a write that a crash cut short, and opening the store discards
  /// them too. But damage to the last write looks the same.
  public var isComplete: Bool {
    lossCount == 0 && lostKeyCount == 0 && manifest == .used && tornByteCount == 0
      && !kinds.contains(.unlistedSegments)
  }

  package init() {}
}

extension SalvageReport: CustomStringConvertible {
  /// The copied and lost entries, the first ten losses, and the warnings, for people. Later
  /// versions may change the text.
  public var description: String {
    let copied = DisplayText.count(entryCount, "entry", "entries")
    let lost = DisplayText.size(lostByteCount)
    return [
      "\(copied) salvaged, \(DisplayText.size(byteCount))",
      lostKeyCount == 0 ? nil : "\(DisplayText.count(lostKeyCount, "key")) lost",
      tornByteCount == 0 ? nil : DisplayText.count(tornByteCount, "unfinished byte"),
      manifest == .used ? nil : "manifest \(manifest.rawValue)",
      isComplete ? "complete" : nil,
      lossCount == 0
        ? nil
        : "\(lost) unreadable in \(DisplayText.count(lossCount, "place"))"
          + DisplayText.list(losses),
    ].compactMap(\.self).joined(separator: ", ")
      + warnings.map { "\n  warning: \($0)" }.joined()
  }
}
