/// The progress of a long call: a backup, a scrub, a verification, a salvage or a removal of
/// everything.
public struct WorkProgress: Sendable, Hashable {
  /// The phases of long calls, in order.
  public enum Phase: Sendable, Hashable {
    /// Reads files and checks them. The unit is a byte.
    case reading
    /// Copies. The unit is a byte.
    case copying
    /// Reads the copies back. The unit is a byte.
    case verifying
    /// Removes files. The unit is a file.
    case removing
  }

  /// The current phase.
  public var phase: Phase
  /// Units done in this phase.
  public var completedCount: Int
  /// Total units in this phase, or `nil` if they are unknown. The number can change during the
  /// call: a compaction shortens what a scrub has to read, and a verification finds the end of an
  /// unclosed log late.
  public var totalCount: Int?

  package init(_ phase: Phase, completedCount: Int, totalCount: Int? = nil) {
    self.phase = phase
    self.completedCount = completedCount
    self.totalCount = totalCount
  }
}
