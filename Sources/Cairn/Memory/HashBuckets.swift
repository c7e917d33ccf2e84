/// Numbers by the hashes of their keys, in a hash table that grows and shrinks in small steps.
///
/// The table has shards, each with about a thousand numbers. When there are more, one shard gives
/// half of its numbers to a new shard (linear hashing: Litwin, 1980). So no call moves more than
/// one shard's numbers, however many there are.
@usableFromInline
struct HashBuckets: ~Copyable, Sendable {
  @usableFromInline var shards = SlotArray<HashShard>()
  /// One less than a power of two. At least as high as the number of the last shard.
  @usableFromInline var mask = 0
  @usableFromInline var count = 0

  @inlinable static var meanCount: Int { 1024 }

  @inlinable
  init() { shards.append(HashShard()) }

  /// The shard of a hash. Its bits are others than the ones that choose a bucket in the shard.
  @inlinable
  @inline(__always)
  func shard(_ hash: UInt32) -> Int {
    let number = Int(hash >> 13) & mask
    return number < shards.count ? number : number & (mask >> 1)
  }

  /// The number with this hash that `isSought` accepts, or `noSlot`.
  @inlinable
  @inline(__always)
  func find(_ hash: UInt32, where isSought: (UInt32) -> Bool) -> UInt32 {
    shards[shard(hash)].find(hash, where: isSought)
  }

  /// Adds a number below 2^31.
  @inlinable
  mutating func enter(_ number: UInt32, hash: UInt32) {
    shards[shard(hash)].enter(number, hash: hash)
    count += 1
    if count > shards.count * Self.meanCount { split() }
  }

  /// Removes a number that is there.
  @inlinable
  mutating func leave(_ number: UInt32, hash: UInt32) {
    shards[shard(hash)].leave(number, hash: hash)
    count -= 1
  }

  /// Puts a number in the place of another.
  mutating func replace(_ number: UInt32, by other: UInt32, hash: UInt32) {
    shards[shard(hash)].replace(number, by: other, hash: hash)
  }

  /// Adds a shard, with the numbers of another one whose hashes now belong there.
  @usableFromInline
  mutating func split() {
    if shards.count > mask { mask = 2 * mask + 1 }
    let source = shards.count & (mask >> 1)
    let half = shards[source].words.count / 2
    let old = exchange(&shards[source], with: HashShard(bucketCount: half))
    shards.append(HashShard(bucketCount: half))
    for bucket in 0..<old.words.count where old.words[bucket] != 0 {
      let word = old.words[bucket]
      let hash = UInt32(truncatingIfNeeded: word >> 32)
      shards[shard(hash)].enter(UInt32(truncatingIfNeeded: word) - 1, hash: hash)
    }
  }

  /// The memory that the table takes, in bytes.
  @usableFromInline
  var byteCount: Int {
    var sum = shards.capacity * MemoryLayout<HashShard>.stride
    for shard in 0..<shards.count { sum += shards[shard].words.count * 8 }
    return sum
  }
}

/// A hash table by open addressing. Each word is a hash and a number:
///
///     hash │ number + 1; 0: empty
@usableFromInline
struct HashShard: ~Copyable, Sendable {
  /// Linear probing. The size is a power of two. Never more than half full.
  @usableFromInline var words: SlotArray<UInt64>
  @usableFromInline var count = 0

  @inlinable
  init(bucketCount: Int = 2) { words = SlotArray(repeating: 0, count: max(2, bucketCount)) }

  @inlinable
  @inline(__always)
  static func word(_ number: UInt32, _ hash: UInt32) -> UInt64 {
    UInt64(hash) << 32 | UInt64(number + 1)
  }

  @inlinable
  @inline(__always)
  func find(_ hash: UInt32, where isSought: (UInt32) -> Bool) -> UInt32 {
    let mask = words.count &- 1
    var bucket = Int(hash) & mask
    while true {
      let word = words[bucket]
      if word == 0 { return noSlot }
      if UInt32(truncatingIfNeeded: word >> 32) == hash {
        let number = UInt32(truncatingIfNeeded: word) &- 1
        if isSought(number) { return number }
      }
      bucket = (bucket &+ 1) & mask
    }
  }

  @inlinable
  mutating func enter(_ number: UInt32, hash: UInt32) {
    if count * 2 >= words.count { resize(to: words.count * 2) }
    place(Self.word(number, hash))
    count += 1
  }

  @inlinable
  mutating func place(_ word: UInt64) {
    let mask = words.count - 1
    var bucket = Int(word >> 32) & mask
    while words[bucket] != 0 { bucket = (bucket + 1) & mask }
    words[bucket] = word
  }

  @usableFromInline
  mutating func resize(to bucketCount: Int) {
    let old = exchange(&words, with: SlotArray(repeating: 0, count: bucketCount))
    for bucket in 0..<old.count where old[bucket] != 0 { place(old[bucket]) }
  }

  @inlinable
  func bucket(of word: UInt64) -> Int {
    let mask = words.count - 1
    var bucket = Int(word >> 32) & mask
    while words[bucket] != word { bucket = (bucket + 1) & mask }
    return bucket
  }

  /// Empties the bucket of a number, and moves later ones that would otherwise be unreachable
  /// (Knuth, volume 3, algorithm 6.4R). So there are no tombstone markers to clear.
  @inlinable
  mutating func leave(_ number: UInt32, hash: UInt32) {
    let mask = words.count - 1
    var hole = bucket(of: Self.word(number, hash))
    var bucket = hole
    while true {
      bucket = (bucket + 1) & mask
      let word = words[bucket]
      if word == 0 { break }
      // The word may move if its home is not between the hole and its place.
      let home = Int(word >> 32) & mask
      if (bucket - home) & mask >= (bucket - hole) & mask {
        words[hole] = word
        hole = bucket
      }
    }
    words[hole] = 0
    count -= 1
    // Far from the load at which the shard doubles, so that few calls resize it.
    if count * 6 < words.count, words.count > 16 { resize(to: words.count / 2) }
  }

  mutating func replace(_ number: UInt32, by other: UInt32, hash: UInt32) {
    words[bucket(of: Self.word(number, hash))] = Self.word(other, hash)
  }
}
