/// A batch that is in the log and comes into the index a few operations at a time, so that others get on
/// in between. Once it is in the log, it is used under the log's lock only.
///
/// Nobody can tell that it is not all there yet, but for reads of single keys, which may see it arrive: a
/// write that looks at one of its keys has the operations on this key entered first; snapshots and
/// checkpoints wait for the end, and its segment is not compacted before.
final class UnpublishedBatch {
  /// An operation, in an order in which those of a shard come together, and those on a key.
  private struct Place: BitwiseCopyable {
    var hash: UInt64
    var number: UInt32

    static func rank(_ hash: UInt64) -> UInt64 { hash << 56 | hash >> 8 }
  }

  var batch: BatchRecords
  /// When it is written.
  let now: Timestamp
  /// The operations, shard by shard, to find those on a key.
  private var places: [Place]
  /// Where it lies, once it is in the log.
  private(set) var segment: Segment?
  private var start = 0
  /// When the first of its operations counts as accessed; the others follow.
  private var firstTick: UInt64 = 0
  /// The next one to be entered, and those behind it that were entered already.
  private var next = 0
  private var entered: Set<Int> = []
  /// Bytes of the records that its puts have replaced.
  var deadByteCount = 0
  /// What the observer is to be told, by the number of the operation.
  private var events: [(number: Int, event: RemovalEvent)] = []

  /// - Complexity: O(n); to be made before the log's lock is taken.
  init(_ batch: consuming BatchRecords, now: Timestamp) {
    places = batch.operations.enumerated().map {
      Place(hash: $0.element.hash, number: UInt32($0.offset))
    }
    // Stable, so that of two operations on a key the later is entered later.
    places.sortByRadix { Place.rank($0.hash) }
    self.batch = batch
    self.now = now
  }

  /// It is in the log now.
  func place(in segment: Segment, at start: Int, firstTick: UInt64) {
    self.segment = segment
    self.start = start
    self.firstTick = firstTick
  }

  /// Calls `body` with the hashes that each shard gets.
  func forEachShard(_ body: ([UInt64]) throws(StoreError) -> Void) throws(StoreError) {
    var start = 0
    while start < places.count {
      let shard = HashIndex.shard(of: places[start].hash)
      var end = start
      while end < places.count, HashIndex.shard(of: places[end].hash) == shard { end += 1 }
      let puts = places[start..<end].filter {
        batch.operations[Int($0.number)].header.kind == .put
      }
      try body(puts.map(\.hash))
      start = end
    }
  }

  /// The hashes of the next operations, to be asked for ahead.
  func nextHashes(_ count: Int) -> [UInt64] {
    batch.operations[next..<min(next + count, batch.operations.count)].map(\.hash)
  }

  /// The next operation to be entered.
  func takeNext() -> Int? {
    while next < batch.operations.count {
      defer { next += 1 }
      if entered.isEmpty || entered.remove(next) == nil { return next }
    }
    return nil
  }

  /// The operations with a hash that are to be entered, in order.
  func take(_ hash: UInt64) -> [Int] {
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

  /// Where the record of an operation lies.
  func location(of operation: BatchRecords.Operation) -> Location {
    guard let segment else { preconditionFailure("it is not in the log") }
    return segment.location(at: start + operation.offset)
  }

  func note(_ event: RemovalEvent, of number: Int) { events.append((number, event)) }

  /// What the observer is to be told, in the order of the operations.
  func takeEvents() -> [RemovalEvent] {
    defer { events = [] }
    return events.sorted { $0.number < $1.number }.map(\.event)
  }
}
