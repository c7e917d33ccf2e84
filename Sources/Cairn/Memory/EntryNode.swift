/// The number of a slot that there is none of.
@usableFromInline let noSlot = UInt32.max

/// What is kept of one slot besides key and value: 64 bytes, as much as a line of the processor's cache.
///
/// Slots refer to each other by number. So nothing is counted when an entry moves in the order, and the
/// node of a free slot links to the next one that is free.
@usableFromInline
struct EntryNode: Sendable {
  /// The neighbour that was used after this one.
  @usableFromInline var newer = noSlot
  /// The neighbour that was used before this one; of a free slot, the next that is free.
  @usableFromInline var older = noSlot
  /// Milliseconds since the epoch, as all times here.
  @usableFromInline var accessed: Int64 = 0
  /// The end of its lifetime, or `never`.
  @usableFromInline var expires: Int64 = never
  /// How long it may go without an access, or `never`.
  @usableFromInline var idleLimit: Int64 = never
  @usableFromInline var written: Int64 = 0
  @usableFromInline var cost = 0
  /// The version, and in the six lowest bits: how often it was used, which takes two; whether it was used since
  /// a tier below was told; whether that was a read; whether it stands in the small queue;
  /// whether it has tags.
  @usableFromInline var mark: UInt64 = 0
  @usableFromInline var hash: UInt32 = 0
  /// Where it stands in the heap of deadlines, or `noSlot`.
  @usableFromInline var heapIndex = noSlot

  @inlinable init() {}

  @inlinable
  var version: UInt64 {
    get { mark >> 6 }
    set { mark = newValue << 6 | mark & 63 }
  }

  /// Whether SIEVE's hand is to pass it.
  @inlinable
  var isVisited: Bool {
    get { mark & 1 != 0 }
    set { mark = mark & ~1 | (newValue ? 1 : 0) }
  }

  /// With S3-FIFO, how often it was used since it came to its queue, at most 3, less one for each time that it was
  /// spared there.
  @inlinable
  var frequency: UInt64 {
    get { mark & 3 }
    set { mark = mark & ~3 | newValue }
  }

  /// Whether it was read or written since `MemoryCache.takeRecentKeys` last gave its key.
  @inlinable
  var isRecent: Bool {
    get { mark & 4 != 0 }
    set { mark = mark & ~4 | (newValue ? 4 : 0) }
  }

  /// Whether it was read since a tier below knew it as just used.
  @inlinable
  var isRead: Bool {
    get { mark & 8 != 0 }
    set { mark = mark & ~8 | (newValue ? 8 : 0) }
  }

  /// With S3-FIFO, whether it stands in the small queue.
  @inlinable
  var isSmall: Bool {
    get { mark & 16 != 0 }
    set { mark = mark & ~16 | (newValue ? 16 : 0) }
  }

  /// Whether it has tags in the tier below.
  @inlinable
  var hasTags: Bool {
    get { mark & 32 != 0 }
    set { mark = mark & ~32 | (newValue ? 32 : 0) }
  }

  /// Notes a use, for S3-FIFO and for a tier below: bits alone, and nothing is written where they are set.
  @inlinable
  @inline(__always)
  mutating func noteUse() {
    let noted = (mark | 4) &+ (mark & 3 == 3 ? 0 : 1)
    if noted != mark { mark = noted }
  }

  /// Whether no read finds it any more.
  @inlinable
  @inline(__always)
  func hasExpired(at now: Int64) -> Bool {
    now >= expires || isIdle(at: now)
  }

  /// Whether it has gone for too long without an access.
  @inlinable
  @inline(__always)
  func isIdle(at now: Int64) -> Bool { idleLimit != never && now >= idleDeadline }

  /// When it will have been idle for too long, if it is not used before.
  @inlinable
  var idleDeadline: Int64 {
    let (sum, overflow) = accessed.addingReportingOverflow(idleLimit)
    return overflow ? (idleLimit < 0 ? .min : never) : sum
  }

  /// The time at which it expires, if it is not used before; or `never`.
  @inlinable
  var deadline: Int64 { idleLimit == never ? expires : min(expires, idleDeadline) }
}
