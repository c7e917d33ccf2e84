/// How far a long call has come: a backup, a scrub, a verification, a salvage or a removal of everything.
public struct WorkProgress: Sendable, Hashable {
  /// What a long call does, in the order of its phases.
  public enum Phase: Sendable, Hashable {
    /// It reads files and checks them. The unit is a byte.
    case reading
    /// It copies. The unit is a byte.
    case copying
    /// It reads its copies again. The unit is a byte.
    case verifying
    /// It removes files. The unit is a file.
    case removing
  }

  /// The current phase.
  public var phase: Phase
  /// Units that are done in this phase.
  public var completedCount: Int
  /// Units in this phase, or `nil` where the call does not know them. The number can change during the call: a
  /// compaction shortens what a scrub has to read, and a verification finds the end of an unclosed log late.
  public var totalCount: Int?

  package init(_ phase: Phase, completedCount: Int, totalCount: Int? = nil) {
    self.phase = phase
    self.completedCount = completedCount
    self.totalCount = totalCount
  }
}
