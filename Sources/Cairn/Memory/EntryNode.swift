/// Sentinel: no slot.
@usableFromInline let noSlot = UInt32.max

/// The data of one slot besides its key and value: 64 bytes, one cache line.
///
/// Slots refer to each other by number. So moving an entry in the order changes no reference
/// counts, and the node of a free slot links to the next free one.
@usableFromInline
struct EntryNode: Sendable {
  /// The neighbour that was used after this one.
  @usableFromInline var newer = noSlot
  /// The neighbour that was used before this one. Free slots are neighbours of each other.
  @usableFromInline var older = noSlot
  /// In milliseconds since the epoch, like all times here.
  @usableFromInline var accessed: Int64 = 0
  /// The end of the entry's lifetime, or `never`.
  @usableFromInline var expires: Int64 = never
  /// How long the entry may go without an access, or `never`.
  @usableFromInline var idleLimit: Int64 = never
  @usableFromInline var written: Int64 = 0
  @usableFromInline var cost = 0
  /// The version, and in the three lowest bits: the use count (two bits), and whether the entry is
  /// in the small queue.
  @usableFromInline var mark: UInt64 = 0
  @usableFromInline var hash: UInt32 = 0
  /// The entry's place in the heap of deadlines, or `noSlot`.
  @usableFromInline var heapIndex = noSlot

  @inlinable init() {}

  /// A new entry's node, used just now.
  @inlinable
  init(hash: UInt32) {
    self.hash = hash
  }

  /// Sets the attributes of a write, and returns what it changes elsewhere.
  @inlinable
  @inline(__always)
  mutating func set(
    cost: Int, _ times: EntryTimes, version: UInt64
  ) -> (cost: Int, isSmall: Bool, isInHeap: Bool) {
    let old = (cost: self.cost, isSmall: isSmall, isInHeap: heapIndex != noSlot)
    self.cost = cost
    written = times.written
    accessed = times.now
    expires = times.expires
    idleLimit = times.idleLimit
    self.version = version
    return old
  }

  /// No higher version fits into the mark.
  @inlinable static var highestVersion: UInt64 { .max >> 3 }

  @inlinable
  var version: UInt64 {
    get { mark >> 3 }
    set { mark = newValue << 3 | mark & 7 }
  }

  /// With SIEVE, whether the hand must pass over the entry. With LRU, whether parallel hits have
  /// used the entry since it last moved.
  @inlinable
  var isVisited: Bool {
    get { mark & 1 != 0 }
    set { mark = mark & ~1 | (newValue ? 1 : 0) }
  }

  /// With S3-FIFO, the entry's uses since it entered its queue, at most 3, minus one for each time
  /// that the queue spared it.
  @inlinable
  var frequency: UInt64 {
    get { mark & 3 }
    set { mark = mark & ~3 | newValue }
  }

  /// With S3-FIFO, whether the entry is in the small queue.
  @inlinable
  var isSmall: Bool {
    get { mark & 4 != 0 }
    set { mark = mark & ~4 | (newValue ? 4 : 0) }
  }

  /// Records a use, for SIEVE or S3-FIFO. Changes only bits of the mark, and writes nothing if the
  /// mark stays the same.
  @inlinable
  @inline(__always)
  mutating func noteUse(_ policy: EvictionPolicy) {
    let noted = EntryMark(mark).used(policy).bits
    if noted != mark { mark = noted }
  }

  /// Whether reads no longer find the entry.
  @inlinable
  @inline(__always)
  func hasExpired(at now: Int64) -> Bool {
    now >= expires || isIdle(at: now)
  }

  /// Whether less than a share of the entry's lifetime has passed since it was written.
  @inlinable
  @inline(__always)
  func isCalm(at now: Int64, share: Double) -> Bool {
    if share >= 1 || expires == never { return true }
    let lifetime = Double(expires) - Double(written)
    return Double(now) - Double(written) < lifetime * share
  }

  /// Whether the entry has been idle for too long.
  @inlinable
  @inline(__always)
  func isIdle(at now: Int64) -> Bool { idleLimit != never && now >= idleDeadline }

  /// When the entry will have been idle for too long, if it is not used before then.
  @inlinable
  var idleDeadline: Int64 {
    let (sum, overflow) = accessed.addingReportingOverflow(idleLimit)
    return overflow ? (idleLimit < 0 ? .min : never) : sum
  }

  /// When the entry expires if it is not used before then, or `never`.
  @inlinable
  var deadline: Int64 { idleLimit == never ? expires : min(expires, idleDeadline) }
}

/// A node's mark, for readers that see no other part of the node.
@usableFromInline
struct EntryMark {
  @usableFromInline let bits: UInt64

  @inlinable
  init(_ bits: UInt64) { self.bits = bits }

  /// The mark after one more use: either visited, or with a use count raised by one, up to three.
  @inlinable
  @inline(__always)
  func used(_ policy: EvictionPolicy) -> EntryMark {
    EntryMark(policy == .s3FIFO ? bits &+ (bits & 3 == 3 ? 0 : 1) : bits | 1)
  }
}
