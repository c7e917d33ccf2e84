/// The hashes of keys that S3-FIFO recently evicted from its small queue, in the order of eviction.
///
///     buckets  hash │ number of the eviction, modulo 2^31
///                             ▼
///     pages    hashes, by the numbers of the evictions
///
/// An eviction takes about 28 bytes. Removing the hash of a returning key leaves a gap in the
/// order. Keys with the same hash count as one key.
@usableFromInline
struct GhostQueue: ~Copyable, Sendable {
  private(set) var buckets = HashBuckets()
  /// The hashes of the evictions from `kept` up to `next`.
  private(set) var pages: [[UInt32]] = []
  /// The number of the oldest eviction in the pages.
  private(set) var kept = 0
  /// The number of the oldest remembered eviction.
  private(set) var first = 0
  /// The number of the next eviction.
  private(set) var next = 0

  static var pageCount: Int { 1024 }
  /// The maximum number of outdated evictions to take out for one new one, so that no write has to
  /// take out all of them.
  private static var mostForgotten: Int { 8 }

  @usableFromInline init() {}

  /// The memory that the queue takes, in bytes.
  @usableFromInline
  var byteCount: Int { pages.count * Self.pageCount * 4 + buckets.byteCount }

  /// Removes a hash.
  ///
  /// - Returns: whether the hash was there.
  /// - Complexity: O(1).
  @usableFromInline
  mutating func take(_ hash: UInt32) -> Bool {
    let short = buckets.find(hash) { _ in true }
    if short == noSlot { return false }
    buckets.leave(short, hash: hash)
    let age = (next - Int(short)) & 0x7FFF_FFFF
    return age <= next - first
  }

  /// Records an eviction, and forgets all but the last `limit` evictions, including gaps.
  ///
  /// - Complexity: O(1).
  @usableFromInline
  mutating func append(_ hash: UInt32, limit: Int) {
    _ = take(hash)
    first = max(first, next - max(0, limit - 1))
    for _ in 0..<Self.mostForgotten where kept < first { takeOutOldest() }
    if limit <= 0 { return }
    let page = next / Self.pageCount - kept / Self.pageCount
    if page == pages.count { pages.append(Array(repeating: 0, count: Self.pageCount)) }
    pages[page][next % Self.pageCount] = hash
    buckets.enter(Self.short(next), hash: hash)
    next += 1
  }

  static func short(_ number: Int) -> UInt32 {
    UInt32(truncatingIfNeeded: number) & 0x7FFF_FFFF
  }

  private mutating func takeOutOldest() {
    let hash = pages[0][kept % Self.pageCount]
    let short = Self.short(kept)
    if buckets.find(hash, where: { $0 == short }) != noSlot { buckets.leave(short, hash: hash) }
    kept += 1
    if kept % Self.pageCount == 0 { pages.removeFirst() }
  }
}
