internal import CCairn
internal import Synchronization

/// A fixed-length run of 64-bit words, initially zero. One thread at a time changes the words.
/// Meanwhile, others may read single words under a pin: the memory is freed once no pin reaches it.
@safe
package struct SharedWords: ~Copyable, @unchecked Sendable {
  // SAFETY: the address never changes, and words are atomic.
  /// `count` and `label`, then the words.
  private let base: UnsafeMutablePointer<Atomic<UInt64>>
  package let count: Int
  private static var headCount: Int { 2 }

  /// An empty run, which owns no memory.
  package init() {
    count = 0
    // Never read from: no index is below the count.
    unsafe base = UnsafeMutablePointer(bitPattern: 16).unsafelyUnwrapped
  }

  /// - Parameter label: a number that readers get with the words.
  /// - Throws: `outOfMemory`.
  package init(zeroCount count: Int, label: UInt64, budget: MemoryBudget) throws(StoreError) {
    precondition(count > 0)
    let byteCount = (Self.headCount + count) * MemoryLayout<UInt64>.stride
    guard budget.permits(byteCount), let memory = unsafe tableMemory(byteCount: byteCount) else {
      throw .outOfMemory(neededByteCount: byteCount)
    }
    unsafe base = memory.bindMemory(to: Atomic<UInt64>.self, capacity: Self.headCount + count)
    unsafe base[0].store(UInt64(count), ordering: .relaxed)
    unsafe base[1].store(label, ordering: .relaxed)
    self.count = count
  }

  deinit {
    guard count > 0 else { return }
    let byteCount = (Self.headCount + count) * MemoryLayout<UInt64>.stride
    unsafe Reclamation.retire(base, byteCount: byteCount)
  }

  package var byteCount: Int { count * MemoryLayout<UInt64>.stride }

  package subscript(index: Int) -> UInt64 {
    @inline(__always) get {
      precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
      return unsafe base[Self.headCount &+ index].load(ordering: .relaxed)
    }
    // Ordered after earlier stores, in particular a change of the version.
    @inline(__always) nonmutating set {
      precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
      unsafe base[Self.headCount &+ index].store(newValue, ordering: .releasing)
    }
  }

  /// The words as readers see them, under a pin.
  @safe
  package struct View {
    // SAFETY: the holder is pinned, so the memory stays.
    private let base: UnsafeMutablePointer<Atomic<UInt64>>

    @inline(__always)
    fileprivate init(_ base: UnsafeMutablePointer<Atomic<UInt64>>) {
      unsafe self.base = unsafe base
    }

    @inline(__always)
    package var count: Int { unsafe Int(base[0].load(ordering: .relaxed)) }
    @inline(__always)
    package var label: UInt64 { unsafe base[1].load(ordering: .relaxed) }

    package subscript(index: Int) -> UInt64 {
      // Later loads stay after this one.
      @inline(__always) get {
        precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
        return unsafe base[headCount &+ index].load(ordering: .acquiring)
      }
    }

    /// Changes a word unless it has changed in the meantime.
    @inline(__always)
    package func exchange(_ index: Int, from old: UInt64, to new: UInt64) {
      precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
      // SAFETY: relaxed, because a read-modify-write continues the release sequence of the word.
      _ = unsafe base[headCount &+ index].compareExchange(
        expected: old, desired: new, ordering: .relaxed)
    }
  }

  fileprivate var label: UInt64 { count == 0 ? 0 : unsafe base[1].load(ordering: .relaxed) }

  /// The offset of a word from the address.
  fileprivate static func offset(of index: Int) -> Int {
    (headCount &+ index) &* MemoryLayout<UInt64>.stride
  }

  fileprivate var address: UInt64 { count == 0 ? 0 : unsafe UInt64(UInt(bitPattern: base)) }
}

/// Versions of runs of words, for reads without a lock. A read is valid only if the version was
/// even before the read and is the same afterwards. (Sequence locks: Boehm, "Can seqlocks get along
/// with programming language memory models?", 2012.)
@safe
package final class VersionedWords: @unchecked Sendable {
  // SAFETY: the address never changes, and words are atomic. Each run has a cache line of its own.
  private let base: UnsafeMutablePointer<Atomic<UInt64>>
  private let count: Int
  private static var stride: Int { 8 }
  /// The index of a run's note, after the version, the address and two words that stay 0.
  private static var note: Int { 4 }
  /// The index of the words' label, for `prefetch`.
  private static var label: Int { 5 }
  /// Stands for unknown words: not an address.
  private static var unknown: UInt64 { 1 }
  /// How many times to try a read while the run changes.
  private static var tryCount: Int { 8 }
  package static func byteCount(of count: Int) -> Int {
    count * stride * MemoryLayout<UInt64>.stride
  }

  package init(count: Int) {
    self.count = count
    unsafe base = pageMemory(byteCount: Self.byteCount(of: count))
      .bindMemory(to: Atomic<UInt64>.self, capacity: count * Self.stride)
  }

  deinit { unsafe freePages(base, byteCount: Self.byteCount(of: count)) }

  @inline(__always)
  private func word(_ run: Int, _ index: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
    precondition(UInt(bitPattern: run) < UInt(bitPattern: count))
    return unsafe base + (run &* Self.stride &+ index)
  }

  /// No read is valid from here until `endChange`. Called by one thread at a time.
  @inline(__always)
  package func beginChange(_ run: Int) {
    let version = unsafe word(run, 0)
    let last = unsafe version.pointee.load(ordering: .relaxed)
    assert(last & 1 == 0, "one change at a time")
    // SAFETY: relaxed, because each word that changes from here on is stored with release. A reader
    // that loads such a word, with acquire, also sees this version when it checks again.
    unsafe version.pointee.store(last &+ 1, ordering: .relaxed)
  }

  /// - Parameters:
  ///   - words: the words to read from now on.
  ///   - isKnown: `false` makes reads return nothing until another change has ended.
  @inline(__always)
  package func endChange(_ run: Int, _ words: borrowing SharedWords, isKnown: Bool = true) {
    unsafe word(run, 1).pointee.store(isKnown ? words.address : Self.unknown, ordering: .releasing)
    unsafe word(run, Self.label).pointee.store(words.label, ordering: .relaxed)
    let version = unsafe word(run, 0)
    unsafe version.pointee.store(
      version.pointee.load(ordering: .relaxed) &+ 1, ordering: .releasing)
  }

  /// Records a fact about a run. Called by one thread at a time.
  @inline(__always)
  package func setNote(_ run: Int, _ note: Bool) {
    unsafe word(run, Self.note).pointee.store(note ? 1 : 0, ordering: .relaxed)
  }

  /// The last note, or `false` if there is none.
  @inline(__always)
  package func note(_ run: Int) -> Bool {
    unsafe word(run, Self.note).pointee.load(ordering: .relaxed) != 0
  }

  /// Prefetches one of the words, and the next cache line, without reading any: so no pin is needed,
  /// and words that are changing do no harm.
  ///
  /// - Parameter index: the number of the word, by the label of the words.
  @inline(__always)
  package func prefetch(at run: Int, _ index: (_ label: UInt64) -> Int) {
    let address = unsafe word(run, 1).pointee.load(ordering: .relaxed)
    let label = unsafe word(run, Self.label).pointee.load(ordering: .relaxed)
    guard let base = unsafe UnsafeRawPointer(bitPattern: UInt(address)) else { return }
    let word = unsafe base + SharedWords.offset(of: index(label))
    unsafe cairn_prefetch(word)
    unsafe cairn_prefetch(word + 64)
  }

  /// The result of `body` for the words, all from one moment. Call under a pin.
  ///
  /// - Returns: `nil` if the words are unknown or kept changing, or if `body` returned `nil`.
  @inline(__always)
  package func look<Result>(at run: Int, _ body: (SharedWords.View) -> Result?) -> Result? {
    for _ in 0..<Self.tryCount {
      let version = unsafe word(run, 0).pointee.load(ordering: .acquiring)
      if version & 1 != 0 { continue }
      let address = unsafe word(run, 1).pointee.load(ordering: .acquiring)
      if address == Self.unknown { return nil }
      let words = unsafe UnsafeMutablePointer<Atomic<UInt64>>(bitPattern: UInt(address))
      // If there are no words, the head is two words of the run that are never written.
      let view = unsafe SharedWords.View(words ?? word(run, 2))
      let result = body(view)
      if unsafe word(run, 0).pointee.load(ordering: .relaxed) == version { return result }
    }
    return nil
  }
}
