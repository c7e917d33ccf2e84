/// The progress of a long call: a backup, scrub, verification, salvage or `removeAll`.
public struct WorkProgress: Sendable, Hashable {
  /// The phases of long calls, in order.
  package enum Phase: Sendable, Hashable {
    /// Reads files and checks them. The unit is a byte.
    case reading
    /// Copies records. The unit is a byte.
    case copying
    /// Reads the copies back. The unit is a byte.
    case verifying
    /// Removes files. The unit is a file.
    case removing
  }

  /// The current phase.
  package let phase: Phase
  /// Units done in this phase.
  public let completedCount: Int
  /// Total units in this phase, or `nil` if unknown. The number can change during the call: for
  /// example, a compaction can shorten the log during a scrub.
  public let totalCount: Int?

  package init(_ phase: Phase, completedCount: Int, totalCount: Int? = nil) {
    self.phase = phase
    self.completedCount = completedCount
    self.totalCount = totalCount
  }
}
