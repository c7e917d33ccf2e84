internal import CairnStore
internal import Synchronization

/// Lets reads run in parallel, without the mutex of their lock, while no thread changes anything.
/// (Dice and Kogan, "BRAVO: biased locking for reader-writer locks", 2019.)
///
/// 1. While reads are shared, a reader enters the stripe of its thread. Then it checks whether
///    reads are still shared.
/// 2. A thread that takes the mutex ends the sharing. Then it waits for the readers in the stripes.
/// 3. These steps are in one total order. So either the reader sees that sharing has ended and
///    leaves, or the other thread sees the reader and waits.
/// 4. After a read that had to wait for the mutex, or after some reads in a row under it, reads are
///    shared again when the mutex is released. With `.afterWaiting`, only reads that had to wait
///    count.
///
/// Each stripe has its own cache lines and counts its own hits, so hits in different stripes write
/// to different cache lines.
@usableFromInline
@safe
struct SharedReaders: ~Copyable, @unchecked Sendable {
  // SAFETY: one allocation, made in `init` and freed in `deinit`, at an address that never changes.
  // All words are atomic.
  /// First the head: whether reads are shared, which stripes were entered, and the number of reads
  /// under the mutex since the last change. Then the stripes: the low 16 bits count the readers
  /// inside, and the bits above count hits. Last, the number of threads that wait for the mutex.
  @usableFromInline let memory: UnsafeMutableRawPointer
  private let sharing: Sharing

  /// When to share reads.
  @usableFromInline
  enum Sharing { case afterReading, afterWaiting }

  /// Threads whose numbers are equal modulo this count share a stripe.
  private static var stripeCount: Int { 16 }
  private static var stride: Int { 16 }
  private static var readCount: Int { 2 }
  private static var waitingCount: Int { stride * (1 + stripeCount) }
  private static var readerMask: UInt64 { 0xFFFF }
  private static var hit: UInt64 { 1 << 16 }
  /// Reads are shared again after this many reads in a row under the mutex.
  private static var readsBeforeSharing: UInt64 { 4 }

  @usableFromInline
  init(_ sharing: Sharing) {
    self.sharing = sharing
    let count = Self.waitingCount + Self.stride
    let words = unsafe UnsafeMutableRawPointer.allocate(
      byteCount: count * MemoryLayout<UInt64>.stride, alignment: 128
    ).bindMemory(to: Atomic<UInt64>.self, capacity: count)
    for index in 0..<count { unsafe (words + index).initialize(to: Atomic(0)) }
    unsafe memory = UnsafeMutableRawPointer(words)
  }

  @inlinable
  deinit { unsafe memory.deallocate() }

  private var words: UnsafeMutablePointer<Atomic<UInt64>> {
    unsafe memory.assumingMemoryBound(to: Atomic<UInt64>.self)
  }

  /// Enters a stripe, if reads are shared.
  ///
  /// - Returns: the stripe, for `leave`, or `nil` if reads are not shared.
  @usableFromInline
  func enter() -> Int? {
    if unsafe words[0].load(ordering: .relaxed) == 0 { return nil }
    let number = threadNumber() & (Self.stripeCount &- 1)
    let stripe = Self.stride &* (number &+ 1)
    let bit = UInt64(1) << UInt64(number)
    if unsafe words[1].load(ordering: .sequentiallyConsistent) & bit == 0 {
      unsafe words[1].bitwiseOr(bit, ordering: .sequentiallyConsistent)
    }
    unsafe words[stripe].wrappingAdd(1, ordering: .sequentiallyConsistent)
    if unsafe words[0].load(ordering: .sequentiallyConsistent) != 0 { return stripe }
    unsafe words[stripe].wrappingSubtract(1, ordering: .releasing)
    return nil
  }

  @usableFromInline
  func leave(_ stripe: Int, isHit: Bool) {
    // SAFETY: all changes of a stripe are read-modify-writes, so they continue its release sequence.
    // A thread that sees no reader inside also sees what all readers before have done.
    unsafe words[stripe].wrappingAdd(
      (isHit ? Self.hit : 0) &- 1, ordering: .releasing)
  }

  /// Takes the mutex and ends the sharing.
  @usableFromInline
  func lock(_ mutex: UnsafeMutableRawPointer, forReading isRead: Bool) {
    let hasWaited = unsafe !tryLockMutex(mutex)
    if hasWaited {
      unsafe words[Self.waitingCount].wrappingAdd(1, ordering: .relaxed)
      unsafe lockMutex(mutex)
      unsafe words[Self.waitingCount].wrappingSubtract(1, ordering: .relaxed)
    }
    endSharing(forReading: isRead, hasWaited: hasWaited)
  }

  /// Shares reads if enough have run in a row, and releases the mutex.
  @usableFromInline
  func unlock(_ mutex: UnsafeMutableRawPointer) {
    if unsafe words[Self.readCount].load(ordering: .relaxed) >= Self.readsBeforeSharing {
      unsafe words[0].store(1, ordering: .sequentiallyConsistent)
    }
    unsafe unlockMutex(mutex)
  }

  /// Call once the mutex is taken.
  ///
  /// - Parameter hasWaited: whether another thread had the mutex.
  @inline(__always)
  private func endSharing(forReading isRead: Bool, hasWaited: Bool) {
    let counted: UInt64 = sharing == .afterReading ? 1 : 0
    let isShared = unsafe words[0].load(ordering: .relaxed) != 0
    let old = unsafe words[Self.readCount].load(ordering: .relaxed)
    let reads =
      !isRead ? 0 : hasWaited ? Self.readsBeforeSharing : isShared ? 0 : old &+ counted
    // Readers read this cache line, so write it only if the number changes.
    if reads != old { unsafe words[Self.readCount].store(reads, ordering: .relaxed) }
    if !isShared { return }
    unsafe words[0].store(0, ordering: .sequentiallyConsistent)
    var entered = unsafe words[1].load(ordering: .sequentiallyConsistent)
    while entered != 0 {
      let stripe = Self.stride * (entered.trailingZeroBitCount + 1)
      var spinCount = 0
      while unsafe words[stripe].load(ordering: .sequentiallyConsistent) & Self.readerMask != 0 {
        spinCount += 1
        // A reader was preempted inside. It may have a lower priority.
        if spinCount > 1000 {
          pause(for: .microseconds(100))
        } else if spinCount > 200 {
          yieldThread()
        }
      }
      entered &= entered - 1
    }
  }

  /// How many threads wait for the mutex.
  var waitingCount: UInt64 { unsafe words[Self.waitingCount].load(ordering: .relaxed) }

  /// The hits of shared reads so far. Call under the mutex.
  var hitCount: UInt64 {
    (1...Self.stripeCount).reduce(0) {
      unsafe $0 &+ words[Self.stride * $1].load(ordering: .relaxed) >> 16
    }
  }
}

extension SlotArray {
  /// Runs `body` with a word of an element as an atomic. Other threads may do so at the same time.
  ///
  /// - Parameter offset: the offset of the word in the element, in bytes.
  @inline(__always)
  func withAtomic<Word: AtomicRepresentable, Result>(
    _ type: Word.Type, at index: Int, offset: Int, _ body: (borrowing Atomic<Word>) -> Result
  ) -> Result {
    precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
    precondition(offset & 7 == 0 && offset + 8 <= MemoryLayout<Element>.size)
    // SAFETY: the word is in the element, and an atomic has the layout of its word.
    let word = unsafe UnsafeMutableRawPointer(base + index) + offset
    return unsafe body(word.assumingMemoryBound(to: Atomic<Word>.self).pointee)
  }
}

extension PagedArray {
  /// Like `SlotArray.withAtomic`.
  @inline(__always)
  func withAtomic<Word: AtomicRepresentable, Result>(
    _ type: Word.Type, at index: Int, offset: Int, _ body: (borrowing Atomic<Word>) -> Result
  ) -> Result {
    pages[index / Self.pageCount].withAtomic(
      type, at: index % Self.pageCount, offset: offset, body)
  }
}
