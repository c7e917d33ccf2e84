/// The progress and the results of scrubs. A *cycle* reads the whole log once.
package struct ScrubStatistics: Sendable, Hashable {
  /// When the last cycle finished, or `nil` if none has.
  package var lastCompleted: Timestamp?
  /// Damaged places that the last cycle found.
  package var lastDamageCount: Int = 0
  /// When maintenance began the current cycle, or `nil` if none is in progress.
  package var began: Timestamp?
  /// Damaged places that the current cycle has found so far.
  package var damageCount: Int = 0
  /// The progress of the current cycle.
  package var progress: WorkProgress?
  /// Bytes read by all scrubs since the store was opened.
  package var readByteCount: Int = 0

  package init() {}
}
