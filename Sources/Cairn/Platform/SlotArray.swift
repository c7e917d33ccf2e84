/// Elements side by side, all of them initialised at all times. Owns its memory, which it gets in one
/// piece.
///
/// Unlike an array it has no reference count, so that writing an element needs no look at whether it is
/// shared, and no exclusivity checks where it is reached through a lock.
@usableFromInline
@safe
struct SlotArray<Element>: ~Copyable {
  // SAFETY: the only pointer to the allocation; `count` elements are initialised in it, and every index
  // is compared with that.
  @usableFromInline var base: UnsafeMutablePointer<Element>
  @usableFromInline private(set) var count: Int

  /// - Parameter count: how many elements, each of them a copy of `filler`.
  @inlinable
  init(repeating filler: Element, count: Int) {
    unsafe base = .allocate(capacity: max(count, 1))
    unsafe base.initialize(repeating: filler, count: count)
    self.count = count
  }

  @inlinable
  deinit {
    unsafe base.deinitialize(count: count)
    unsafe base.deallocate()
  }

  @inlinable
  subscript(index: Int) -> Element {
    @inline(__always) _read {
      precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
      yield unsafe base[index]
    }
    @inline(__always) _modify {
      precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
      yield unsafe &base[index]
    }
  }

  /// Adds copies of `filler` until there are `newCount` elements.
  @inlinable
  mutating func grow(toCount newCount: Int, filler: Element) {
    precondition(newCount >= count)
    let larger = UnsafeMutablePointer<Element>.allocate(capacity: max(newCount, 1))
    unsafe larger.moveInitialize(from: base, count: count)
    unsafe (larger + count).initialize(repeating: filler, count: newCount - count)
    unsafe base.deallocate()
    unsafe base = unsafe larger
    count = newCount
  }
}

// SAFETY: it owns its elements as an array does.
extension SlotArray: @unchecked Sendable where Element: Sendable {}
