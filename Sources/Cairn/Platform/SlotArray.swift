/// Contiguous elements, all of them always initialised. Owns its memory, which is one allocation.
///
/// Unlike an array, it has no reference count. Writing an element therefore needs no uniqueness
/// check, and no exclusivity checks if it is reached through a lock.
@usableFromInline
@safe
struct SlotArray<Element>: ~Copyable {
  // SAFETY: the only pointer to the allocation; it holds `count` initialised elements, and every
  // index is checked against that.
  @usableFromInline var base: UnsafeMutablePointer<Element>
  @usableFromInline private(set) var count: Int

  /// - Parameter count: the number of elements, each a copy of `filler`.
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

// SAFETY: it owns its elements, like an array.
extension SlotArray: @unchecked Sendable where Element: Sendable {}
