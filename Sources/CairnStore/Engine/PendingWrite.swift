/// The remaining waits of a write that is in the log and in the index.
@usableFromInline
package struct PendingWrite: Sendable {
  /// The last number that must be durable, or 0 for none.
  var sequence: SequenceNumber = 0
  var durability = Durability.process
  /// The bytes it has made dead, if it must wait for compaction, or else 0.
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

  /// A write without waits.
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
  /// In the log and in the index, but may still have to wait.
  case entered(Result, PendingWrite)
  /// Must be entered on another thread, because it would have to wait.
  case left(@Sendable () throws(Failure) -> (Result, PendingWrite))
}
