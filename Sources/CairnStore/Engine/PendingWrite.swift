/// What a call's writes, which are in the log and in the index, still have to wait for.
@usableFromInline
package struct PendingWrite: Sendable {
  /// The last sequence number that must be durable, or 0 for none.
  var sequence: SequenceNumber = 0
  var durability = Durability.process
  /// The bytes that the write has made dead if it must wait for compaction, otherwise 0.
  var slowedByteCount = 0
  /// Whether the limits must still be enforced. Only for a write made with `atOnce`.
  var mustEnforceLimits = false
  /// Whether the write was skipped because it would have had to wait. Only for a write made with
  /// `atOnce`.
  package private(set) var isLeft = false
  /// The place of the record, if it is known and the entry cannot expire.
  package var place = RecordPlace.unknown
  /// The value that the write replaced, if removals are observed. The array of removals holds only
  /// other values, so a write that replaces a value needs no array and no copy of the key.
  package var replaced: Replacement?

  /// A value that a write replaced.
  package struct Replacement: Sendable {
    package var version: SequenceNumber
    package var cause: RemovalCause
    /// How many of the write's other removals came before this one.
    var index = 0

    /// Adds the replacement to the other removals of the write.
    package func add(to removals: inout [RemovalEvent], ofKey key: RawSpan) {
      removals.insert(
        .entry(key: key.copied(), version: version, cause: cause), at: index)
    }
  }

  init(sequence: SequenceNumber, durability: Durability, slowedByteCount: Int = 0) {
    self.sequence = sequence
    self.durability = durability
    self.slowedByteCount = slowedByteCount
  }

  /// A write that waits for nothing.
  package init() {}

  /// Adds what another write of the same call waits for. Both have the same durability class.
  package mutating func add(_ other: PendingWrite) {
    if other.sequence > sequence { (sequence, durability) = (other.sequence, other.durability) }
    slowedByteCount += other.slowedByteCount
  }

  /// A write that was not made.
  static var left: PendingWrite {
    var pending = PendingWrite()
    pending.isLeft = true
    return pending
  }
}

/// A write that async code has begun.
@usableFromInline
package enum StartedWrite<Result: Sendable, Failure: Error>: Sendable {
  /// The write is in the log and in the index, but may still have to wait.
  case entered(Result, PendingWrite)
  /// The write would have to wait, so another thread must make it.
  case left(@Sendable () throws(Failure) -> (Result, PendingWrite))
}
