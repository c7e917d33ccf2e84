/// A fixed-length run of plain elements, initially zero. Owns its memory.
///
/// Unlike an array, it has no reference count and no exclusivity checks, and all-zero memory comes
/// from the kernel untouched.
@safe
package struct FlatBuffer<Element: BitwiseCopyable>: ~Copyable, @unchecked Sendable {
  // SAFETY: the only pointer to the allocation; the owner's lock controls sharing.
  private let base: UnsafeMutablePointer<Element>
  package let count: Int

  /// An empty run, which owns no memory.
  package init() {
    // Never read from: no index is below the count.
    unsafe base =
      UnsafeMutablePointer(
        bitPattern: MemoryLayout<Element>.alignment
      ).unsafelyUnwrapped
    count = 0
  }

  /// `count` elements whose bytes are all zero.
  ///
  /// - Throws: `outOfMemory`.
  package init(zeroCount count: Int, budget: MemoryBudget) throws(StoreError) {
    precondition(count > 0)
    let byteCount = count * MemoryLayout<Element>.stride
    guard budget.permits(byteCount), let memory = unsafe zeroedMemory(byteCount: byteCount) else {
      throw .outOfMemory(neededByteCount: byteCount)
    }
    unsafe base = memory.bindMemory(to: Element.self, capacity: count)
    self.count = count
  }

  deinit { if count > 0 { unsafe freeMemory(base) } }

  package var byteCount: Int { count * MemoryLayout<Element>.stride }

  package subscript(index: Int) -> Element {
    @inline(__always) get {
      precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
      return unsafe base[index]
    }
    @inline(__always) nonmutating set {
      precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
      unsafe base[index] = newValue
    }
  }

  /// A span of the elements in place.
  @inline(__always)
  @_lifetime(borrow self)
  package func span(from start: Int, count length: Int) -> Span<Element> {
    precondition(start >= 0 && length >= 0 && start + length <= count)
    // SAFETY: the elements are in the allocation, which this value owns for as long as it is
    // borrowed.
    let elements = unsafe UnsafeBufferPointer(start: base + start, count: length)
    return unsafe _overrideLifetime(elements.span, borrowing: self)
  }

  /// Moves `length` elements from `source` to `target`; the ranges may overlap.
  @inline(__always)
  package func move(from source: Int, to target: Int, length: Int) {
    precondition(source >= 0 && target >= 0 && length >= 0)
    precondition(source + length <= count && target + length <= count)
    unsafe (base + target).update(from: base + source, count: length)
  }
}
