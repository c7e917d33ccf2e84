/// The result of opening a store.
public struct RecoveryReport: Sendable, Hashable {
  /// The source of the index.
  public enum Source: String, Sendable, Hashable {
    /// The store was new.
    case created
    /// A scan of every record header.
    case scan
    /// A checkpoint, and a scan of the records after it.
    case checkpoint
  }

  /// The source of the index.
  public var source: Source = .created
  /// Whether the store was closed cleanly or not written to since.
  public var wasClean: Bool = true
  /// Records read to build the index.
  public var replayedRecordCount: Int = 0
  /// Bytes discarded at the end of the log. They contain no acknowledged durable write.
  public var tornByteCount: Int = 0
  /// Damaged values whose keys are intact: reading one throws.
  public var damagedValues: [Corruption] = []
  /// Files that the manifest does not list, moved to the folder `quarantine`.
  public var quarantinedFiles: [String] = []
  /// Whether the clock was more than a day behind the last time recorded in the store. Expiry then
  /// uses the clock.
  public var clockWentBack: Bool = false
  /// How far the clock was behind the last time recorded in the store, or zero if less than a
  /// second. Lifetimes then use the recorded time plus the time elapsed since, unless
  /// `clockWentBack`.
  public var clockLag: Duration = .zero

  package init() {}
}
