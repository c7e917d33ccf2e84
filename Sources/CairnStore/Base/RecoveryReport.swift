/// What opening a store found and did.
public struct RecoveryReport: Sendable, Hashable {
  /// Where the index came from.
  public enum Source: String, Sendable, Hashable {
    /// The store was new.
    case created
    /// Every record header was read.
    case scan
    /// A checkpoint was loaded and what followed it was read.
    case checkpoint
  }

  /// Where the index came from.
  public var source: Source = .created
  /// Whether the store had been closed before, or nothing was written since.
  public var wasClean: Bool = true
  /// Records read to build the index.
  public var replayedRecordCount: Int = 0
  /// Bytes at the end of the log that no acknowledged durable write needed and that were
  /// discarded.
  public var tornByteCount: Int = 0
  /// Values found damaged while their keys were intact: reading one of them throws.
  public var damagedValues: [Corruption] = []
  /// Files that the manifest does not know, moved to the folder `quarantine`.
  public var quarantinedFiles: [String] = []
  /// Whether the clock stood more than a day before the last time recorded in the store; expiry
  /// then goes by the clock.
  public var clockWentBack: Bool = false
  /// By how much the clock stood before the last time recorded in the store; zero where that was less than a second.
  /// Lifetimes then go by the recorded time and what has passed since, unless `clockWentBack`.
  public var clockLag: Duration = .zero

  package init() {}
}
