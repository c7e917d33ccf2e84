/// What a write that is in the log and in the index still waits for.
@usableFromInline
package struct PendingWrite: Sendable {
  /// The last number that must be durable; 0: none.
  var sequence: SequenceNumber = 0
  var durability = Durability.process
  /// How much it has made dead, if it must wait for compaction; else 0.
  var slowedByteCount = 0
  /// Whether the limits must still be enforced. Only for a write that had to be entered at once.
  var keepsLimits = false
  /// Whether it was not entered because it would have had to wait. Only for such a write.
  package private(set) var isLeft = false

  init(sequence: SequenceNumber, durability: Durability, slowedByteCount: Int = 0) {
    self.sequence = sequence
    self.durability = durability
    self.slowedByteCount = slowedByteCount
  }

  /// Waits for nothing.
  package init() {}

  /// A write that was not entered.
  static var left: PendingWrite {
    var pending = PendingWrite()
    pending.isLeft = true
    return pending
  }
}

/// A write of async code that has begun.
@usableFromInline
package enum StartedWrite<Result: Sendable, Failure: Error>: Sendable {
  /// In the log and in the index; may wait for something.
  case entered(Result, PendingWrite)
  /// Must be entered on another thread, because there is something to wait for.
  case left(@Sendable () throws(Failure) -> (Result, PendingWrite))
}
