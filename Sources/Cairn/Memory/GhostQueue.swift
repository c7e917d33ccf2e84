/// The hashes of keys that S3-FIFO recently evicted from its small queue, in the order of eviction.
/// Allocates nothing before the first eviction.
///
///     places   place + 1 in the ring, by open addressing; 0: empty
///                ▼
///     hashes   a ring, by the numbers of the evictions
///
/// Each place takes 12 bytes. Removing the hash of a returning key leaves a gap in the ring. Keys
/// with the same hash count as one key.
@usableFromInline
struct GhostQueue: Sendable {
  /// The size is a power of two, or zero.
  private var hashes: [UInt32] = []
  /// Linear probing. Never more than half full.
  private var places: [UInt32] = []
  /// The number of the oldest remembered eviction.
  private var first = 0
  /// The number of the next eviction.
  private var next = 0

  @usableFromInline init() {}

  /// The memory that the queue takes, in bytes.
  @usableFromInline
  var byteCount: Int { (hashes.capacity + places.capacity) * MemoryLayout<UInt32>.stride }

  /// Removes a hash.
  ///
  /// - Returns: whether the hash was there.
  /// - Complexity: O(1).
  @usableFromInline
  mutating func take(_ hash: UInt32) -> Bool {
    guard let bucket = bucket(of: hash, where: { hashes[$0] == hash }) else { return false }
    leave(bucket)
    return true
  }

  /// Records an eviction, and forgets all but the last `limit` evictions, including gaps.
  ///
  /// - Complexity: amortised O(1).
  @usableFromInline
  mutating func append(_ hash: UInt32, limit: Int) {
    _ = take(hash)
    forget(allBut: max(0, limit - 1))
    if limit <= 0 { return }
    if next - first == hashes.count { grow() }
    let place = next & (hashes.count - 1)
    hashes[place] = hash
    enter(place)
    next += 1
  }

  private mutating func forget(allBut count: Int) {
    while next - first > count {
      let place = first & (hashes.count - 1)
      if let bucket = bucket(of: hashes[place], where: { $0 == place }) { leave(bucket) }
      first += 1
    }
  }

  private mutating func grow() {
    let old = self
    hashes = Array(repeating: 0, count: max(8, 2 * old.hashes.count))
    places = Array(repeating: 0, count: 2 * hashes.count)
    for number in first..<next {
      let oldPlace = number & (old.hashes.count - 1)
      let place = number & (hashes.count - 1)
      hashes[place] = old.hashes[oldPlace]
      if old.bucket(of: hashes[place], where: { $0 == oldPlace }) != nil { enter(place) }
    }
  }

  // MARK: The buckets

  /// The bucket with this hash whose place `isSought` accepts.
  private func bucket(of hash: UInt32, where isSought: (_ place: Int) -> Bool) -> Int? {
    if places.isEmpty { return nil }
    let mask = places.count - 1
    var bucket = Int(hash) & mask
    while places[bucket] != 0 {
      if isSought(Int(places[bucket]) - 1) { return bucket }
      bucket = (bucket + 1) & mask
    }
    return nil
  }

  private mutating func enter(_ place: Int) {
    let mask = places.count - 1
    var bucket = Int(hashes[place]) & mask
    while places[bucket] != 0 { bucket = (bucket + 1) & mask }
    places[bucket] = UInt32(place + 1)
  }

  /// Empties a bucket; see `MemoryTable.leave`.
  private mutating func leave(_ bucket: Int) {
    let mask = places.count - 1
    var hole = bucket
    var bucket = bucket
    while true {
      bucket = (bucket + 1) & mask
      let place = places[bucket]
      if place == 0 { break }
      let home = Int(hashes[Int(place) - 1]) & mask
      if (bucket - home) & mask >= (bucket - hole) & mask {
        places[hole] = place
        hole = bucket
      }
    }
    places[hole] = 0
  }

  /// Inconsistencies: for tests.
  func audit() -> [String] {
    var faults: [String] = []
    if next - first > hashes.count { faults.append("more ghosts than places") }
    var found: Set<UInt32> = []
    for place in places where place != 0 {
      let index = Int(place) - 1
      if !found.insert(hashes[index]).inserted { faults.append("a ghost occurs twice") }
      let age = (index - first) & (hashes.count - 1)
      if age >= next - first { faults.append("a ghost is too old") }
      if bucket(of: hashes[index], where: { $0 == index }) == nil {
        faults.append("a ghost is not found")
      }
    }
    return faults
  }
}
