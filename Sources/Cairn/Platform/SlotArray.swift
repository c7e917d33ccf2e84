/// Contiguous elements, in one allocation that the array owns.
///
/// Unlike `Array`, it has no reference count. Writing an element therefore needs no uniqueness
/// check, and no exclusivity check if a lock guards the array.
@usableFromInline
@safe
struct SlotArray<Element: ~Copyable>: ~Copyable {
  // SAFETY: the only pointer to the allocation, whose first `count` elements are initialised.
  // `count` is at most `capacity`, and every index is checked against `count`.
  @usableFromInline var base: UnsafeMutablePointer<Element>
  @usableFromInline private(set) var count: Int
  /// How many elements fit.
  @usableFromInline private(set) var capacity: Int

  @inlinable
  init() {
    unsafe base = .allocate(capacity: 1)
    count = 0
    capacity = 0
  }

  @inlinable
  deinit {
    unsafe base.deinitialize(count: count)
    unsafe base.deallocate()
  }

  @inlinable
  subscript(index: Int) -> Element {
    @inline(__always) unsafeAddress { unsafe UnsafePointer(address(of: index)) }
    @inline(__always) unsafeMutableAddress { unsafe address(of: index) }
  }

  @inlinable
  @inline(__always)
  func address(of index: Int) -> UnsafeMutablePointer<Element> {
    precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
    return unsafe base + index
  }

  /// Makes room for more elements. Does not touch the new memory, which may be large.
  @inlinable
  mutating func grow(toCapacity newCapacity: Int) {
    precondition(newCapacity >= count)
    let larger = UnsafeMutablePointer<Element>.allocate(capacity: max(newCapacity, 1))
    unsafe larger.moveInitialize(from: base, count: count)
    unsafe base.deallocate()
    unsafe base = unsafe larger
    capacity = newCapacity
  }

  /// Adds an element. Doubles the room if it is full.
  @inlinable
  mutating func append(_ element: consuming Element) {
    if count == capacity { grow(toCapacity: max(8, capacity * 2)) }
    unsafe (base + count).initialize(to: element)
    count += 1
  }

  @inlinable
  mutating func removeLast() -> Element {
    precondition(count > 0)
    count -= 1
    return unsafe (base + count).move()
  }
}

extension SlotArray {
  /// - Parameter count: the number of elements, each a copy of `filler`.
  @inlinable
  init(repeating filler: Element, count: Int) {
    unsafe base = .allocate(capacity: max(count, 1))
    unsafe base.initialize(repeating: filler, count: count)
    self.count = count
    capacity = count
  }
}

// SAFETY: it owns its elements, like `Array`.
extension SlotArray: @unchecked Sendable where Element: Sendable & ~Copyable {}
