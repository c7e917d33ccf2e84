/// Sentinel: no slot.
@usableFromInline let noSlot = UInt32.max

/// The bookkeeping of one slot besides key and value: 64 bytes, one cache line.
///
/// Slots refer to each other by number. So moving an entry in the order changes no reference
/// counts, and the node of a free slot links to the next free one.
@usableFromInline
struct EntryNode: Sendable {
  /// The neighbour that was used after this one.
  @usableFromInline var newer = noSlot
  /// The neighbour that was used before this one. For a free slot, the next free one.
  @usableFromInline var older = noSlot
  /// Milliseconds since the epoch, like all times here.
  @usableFromInline var accessed: Int64 = 0
  /// The end of its lifetime, or `never`.
  @usableFromInline var expires: Int64 = never
  /// How long it may go without an access, or `never`.
  @usableFromInline var idleLimit: Int64 = never
  @usableFromInline var written: Int64 = 0
  @usableFromInline var cost = 0
  /// The version. The seven lowest bits hold the use count (two bits), whether it has been used
  /// since a tier below was told, whether that was a read, whether it is in the small queue,
  /// whether it has tags, and whether the tier below lacks it.
  @usableFromInline var mark: UInt64 = 0
  @usableFromInline var hash: UInt32 = 0
  /// Its place in the heap of deadlines, or `noSlot`.
  @usableFromInline var heapIndex = noSlot

  @inlinable init() {}

  @inlinable
  var version: UInt64 {
    get { mark >> 7 }
    set { mark = newValue << 7 | mark & 127 }
  }

  /// With SIEVE, whether the hand must pass over it. With LRU, whether parallel hits have used it
  /// since it last moved.
  @inlinable
  var isVisited: Bool {
    get { mark & 1 != 0 }
    set { mark = mark & ~1 | (newValue ? 1 : 0) }
  }

  /// With S3-FIFO, its uses since it entered its queue, at most 3, minus one for each time that the
  /// queue spared it.
  @inlinable
  var frequency: UInt64 {
    get { mark & 3 }
    set { mark = mark & ~3 | newValue }
  }

  /// Whether it has been read or written since `MemoryCache.takeRecentKeys` last returned its key.
  @inlinable
  var isRecent: Bool {
    get { mark & 4 != 0 }
    set { mark = mark & ~4 | (newValue ? 4 : 0) }
  }

  /// Whether it has been read since the tier below last learned of its use.
  @inlinable
  var isRead: Bool {
    get { mark & 8 != 0 }
    set { mark = mark & ~8 | (newValue ? 8 : 0) }
  }

  /// With S3-FIFO, whether it is in the small queue.
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

  /// Whether only this tier has it.
  @inlinable
  var isAlone: Bool {
    get { mark & 64 != 0 }
    set { mark = mark & ~64 | (newValue ? 64 : 0) }
  }

  /// Notes that LRU moves it to the front.
  @inlinable
  @inline(__always)
  mutating func noteMove() { mark = mark & ~1 | 4 }

  /// Notes a use, for SIEVE or S3-FIFO and for a tier below. It only sets bits, and writes nothing
  /// if they are already set.
  @inlinable
  @inline(__always)
  mutating func noteUse(_ policy: EvictionPolicy) {
    let noted = EntryMark(mark).used(policy).bits
    if noted != mark { mark = noted }
  }

  /// Whether reads no longer find it.
  @inlinable
  @inline(__always)
  func hasExpired(at now: Int64) -> Bool {
    now >= expires || isIdle(at: now)
  }

  /// Whether less than a share of its lifetime has passed since it was written.
  @inlinable
  @inline(__always)
  func isCalm(at now: Int64, share: Double) -> Bool {
    if share >= 1 || expires == never { return true }
    let lifetime = Double(expires) - Double(written)
    return Double(now) - Double(written) < lifetime * share
  }

  /// Whether it has been idle for too long.
  @inlinable
  @inline(__always)
  func isIdle(at now: Int64) -> Bool { idleLimit != never && now >= idleDeadline }

  /// When it will have been idle for too long, unless it is used before then.
  @inlinable
  var idleDeadline: Int64 {
    let (sum, overflow) = accessed.addingReportingOverflow(idleLimit)
    return overflow ? (idleLimit < 0 ? .min : never) : sum
  }

  /// When it expires, unless it is used before then; `never` if it does not.
  @inlinable
  var deadline: Int64 { idleLimit == never ? expires : min(expires, idleDeadline) }
}

/// The mark of a node, for readers that see nothing else of the node.
@usableFromInline
struct EntryMark {
  @usableFromInline let bits: UInt64

  @inlinable
  init(_ bits: UInt64) { self.bits = bits }

  @inlinable var version: UInt64 { bits >> 7 }
  @inlinable var isRead: Bool { bits & 8 != 0 }
  @inlinable var hasTags: Bool { bits & 32 != 0 }

  /// The mark after one more use: recent, and visited or used once more, up to three times.
  @inlinable
  @inline(__always)
  func used(_ policy: EvictionPolicy) -> EntryMark {
    EntryMark(policy == .s3FIFO ? (bits | 4) &+ (bits & 3 == 3 ? 0 : 1) : bits | 5)
  }
}
