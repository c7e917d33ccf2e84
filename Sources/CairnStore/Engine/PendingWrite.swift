/// What a write still waits for that is in the log and in the index.
@usableFromInline
package struct PendingWrite: Sendable {
  /// The last number that has to be durable; 0: none.
  var sequence: SequenceNumber = 0
  var durability = Durability.process
  /// How much it has made dead, where it has to wait for compaction; else 0.
  var slowedByteCount = 0
  /// Whether the limits are yet to be kept. Only of a write that was to be entered at once.
  var keepsLimits = false
  /// Whether it was not entered, since something would have had to be waited for. Only of such a write.
  package private(set) var isLeft = false

  init(sequence: SequenceNumber, durability: Durability, slowedByteCount: Int = 0) {
    self.sequence = sequence
    self.durability = durability
    self.slowedByteCount = slowedByteCount
  }

  /// Nothing is waited for.
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
  /// It is in the log and in the index, and may wait for something.
  case entered(Result, PendingWrite)
  /// It is to be entered on another thread, since something has to be waited for.
  case left(@Sendable () throws(Failure) -> (Result, PendingWrite))
}
