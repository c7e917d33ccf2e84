/// What a write still waits for that is in the log and in the index.
package struct PendingWrite: Sendable {
  /// The last number that has to be durable; 0: none.
  var sequence: SequenceNumber = 0
  var durability = Durability.process
  /// How much it has made dead, where it has to wait for compaction; else 0.
  var slowedByteCount = 0

  init(sequence: SequenceNumber, durability: Durability, slowedByteCount: Int = 0) {
    self.sequence = sequence
    self.durability = durability
    self.slowedByteCount = slowedByteCount
  }

  /// Nothing is waited for.
  package init() {}
}
