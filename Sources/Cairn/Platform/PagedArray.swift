internal import CCairn

/// Elements in pages of 4,096. Growing and shrinking move at most one page, however many elements
/// there are.
@usableFromInline
struct PagedArray<Element: ~Copyable>: ~Copyable {
  @usableFromInline var pages = SlotArray<SlotArray<Element>>()

  @inlinable static var pageCount: Int { 1 << 12 }

  @inlinable init() {}

  @inlinable
  var count: Int {
    pages.count == 0 ? 0 : (pages.count - 1) * Self.pageCount + pages[pages.count - 1].count
  }

  /// How many elements fit into the pages.
  @inlinable
  var capacity: Int {
    pages.count == 0 ? 0 : (pages.count - 1) * Self.pageCount + pages[pages.count - 1].capacity
  }

  @inlinable
  subscript(index: Int) -> Element {
    @inline(__always) unsafeAddress { unsafe UnsafePointer(address(of: index)) }
    @inline(__always) unsafeMutableAddress { unsafe address(of: index) }
  }

  @inlinable
  @inline(__always)
  func address(of index: Int) -> UnsafeMutablePointer<Element> {
    unsafe pages[index >> 12].address(of: index & (Self.pageCount &- 1))
  }

  /// Lets the processor fetch the first cache line of an element.
  @inlinable
  @inline(__always)
  func prefetch(_ index: Int) {
    unsafe prefetchLine(pages[index >> 12].base + (index & (Self.pageCount &- 1)))
  }

  @inlinable
  mutating func append(_ element: consuming Element) {
    if pages.count == 0 || pages[pages.count - 1].count == Self.pageCount {
      var page = SlotArray<Element>()
      // Only the first page grows with its elements, so that a small array takes little memory.
      if pages.count > 0 { page.grow(toCapacity: Self.pageCount) }
      pages.append(page)
    }
    pages[pages.count - 1].append(element)
  }

  /// Removes the last element, and frees its page if no element is left there.
  @inlinable
  mutating func removeLast() -> Element {
    let last = pages.count - 1
    let element = pages[last].removeLast()
    if last > 0, pages[last].count == 0 { _ = pages.removeLast() }
    return element
  }
}

extension PagedArray: Sendable where Element: Sendable & ~Copyable {}

/// Lets the processor fetch a cache line. Any address is allowed.
@usableFromInline
func prefetchLine(_ address: UnsafeRawPointer) { unsafe cairn_prefetch(address) }
