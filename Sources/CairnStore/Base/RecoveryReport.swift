/// The result of opening a store.
public struct RecoveryReport: Sendable, Hashable {
  /// The source of the index.
  package enum Source: String, Sendable, Hashable {
    /// The store was new.
    case created
    /// A scan of every record header.
    case scan
    /// A checkpoint, and a scan of the record headers after it.
    case checkpoint
  }

  /// The source of the index.
  package var source: Source = .created
  /// Whether the last session closed the store, or wrote nothing to it.
  public package(set) var wasClean: Bool = true
  /// Records read to build the index.
  public package(set) var replayedRecordCount: Int = 0
  /// Bytes discarded at the end of the log. They never contain a write that was acknowledged as
  /// durable.
  public package(set) var tornByteCount: Int = 0
  /// Damaged values whose keys are intact. Reading one throws.
  public package(set) var damage: [Damage] = []
  /// Files that the manifest does not list. The open moved them into the folder `quarantine`.
  package var quarantinedFiles: [String] = []
  /// Whether the clock was more than a day behind the last time recorded in the store. In that case
  /// lifetimes follow the clock.
  package var clockWentBack: Bool = false
  /// How far the clock was behind the last time recorded in the store, or zero if it was less than
  /// a second. Unless `clockWentBack` is `true`, lifetimes then follow the recorded time plus the
  /// time elapsed since the open.
  package var clockLag: Duration = .zero

  package init() {}
}
