/// A batch that is in the log and is added to the index a few operations at a time, so that other
/// writes can continue in between. Once it is in the log, it is used only under the log's lock.
///
/// Only reads of single keys can see that it is incomplete. A write to one of its keys first
/// publishes the operations on that key. Snapshots and checkpoints wait until all of it is
/// published, and its segment is not compacted before that.
final class UnpublishedBatch {
  /// An operation. Sorting by rank puts the operations of a shard, and those on a key, together.
  private struct Place: BitwiseCopyable {
    /// Only the bits that the index knows, because an eviction takes its victim's hash from there.
    var hash: UInt64
    var number: UInt32

    static func rank(_ hash: UInt64) -> UInt64 { hash << 56 | hash >> 8 }
  }

  var batch: BatchRecords
  /// The time of the write.
  let now: Timestamp
  /// The operations, sorted by rank, for finding those on a key.
  private var places: [Place]
  /// The batch's segment, once the batch is in the log.
  private(set) var segment: Segment?
  private var start = 0
  /// The tick of the first operation; those of the others follow.
  private var firstTick: UInt64 = 0
  /// The next operation to publish, and later ones that are already published.
  private var next = 0
  private var entered: Set<Int> = []
  /// Bytes of the records that its puts have replaced.
  var deadByteCount = 0
  /// The events for the observer, by the number of the operation.
  private var events: [(number: Int, event: RemovalEvent)] = []

  /// - Complexity: O(n); call before taking the log's lock.
  init(_ batch: consuming BatchRecords, now: Timestamp) {
    places = batch.operations.enumerated().map {
      Place(hash: HashIndex.known($0.element.hash), number: UInt32($0.offset))
    }
    // Stable, so that the later of two operations on a key is published later.
    places.sortByRadix { Place.rank($0.hash) }
    self.batch = batch
    self.now = now
  }

  /// Marks the batch as being in the log.
  func place(in segment: Segment, at start: Int, firstTick: UInt64) {
    self.segment = segment
    self.start = start
    self.firstTick = firstTick
  }

  /// Calls `body` with the hashes of each shard's puts.
  func forEachShard(_ body: ([UInt64]) throws(StoreError) -> Void) throws(StoreError) {
    var start = 0
    while start < places.count {
      let shard = HashIndex.shard(of: places[start].hash)
      var end = start
      while end < places.count, HashIndex.shard(of: places[end].hash) == shard { end += 1 }
      let puts = places[start..<end].filter { batch.operations[Int($0.number)].isPut }
      try body(puts.map(\.hash))
      start = end
    }
  }

  /// The hashes of the next operations, for prefetching.
  func nextHashes(_ count: Int) -> [UInt64] {
    batch.operations[next..<min(next + count, batch.operations.count)].map(\.hash)
  }

  /// The next operation to publish.
  func takeNext() -> Int? {
    while next < batch.operations.count {
      defer { next += 1 }
      if entered.isEmpty || entered.remove(next) == nil { return next }
    }
    return nil
  }

  /// Takes the pending operations with this hash, in order. Compares only the bits of the hash that
  /// the index knows.
  func take(_ hash: UInt64) -> [Int] {
    let hash = HashIndex.known(hash)
    let rank = Place.rank(hash)
    var (low, high) = (0, places.count)
    while low < high {
      let middle = (low + high) / 2
      if Place.rank(places[middle].hash) < rank { low = middle + 1 } else { high = middle }
    }
    var numbers: [Int] = []
    while low < places.count, places[low].hash == hash {
      let number = Int(places[low].number)
      if number >= next, entered.insert(number).inserted { numbers.append(number) }
      low += 1
    }
    return numbers
  }

  func tick(of number: Int) -> UInt64 { min(firstTick + UInt64(number), IndexEntry.tickLimit - 1) }

  /// The location of an operation's record.
  func location(of operation: BatchRecords.Operation) -> Location {
    guard let segment else { preconditionFailure("the batch is not in the log") }
    return segment.location(at: start + operation.offset)
  }

  func note(_ event: RemovalEvent, of number: Int) { events.append((number, event)) }

  /// The events for the observer, in the order of the operations.
  func takeEvents() -> [RemovalEvent] {
    defer { events = [] }
    return events.sorted { $0.number < $1.number }.map(\.event)
  }
}
