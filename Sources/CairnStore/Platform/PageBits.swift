internal import Synchronization

/// A bit for each page of a file, clear at first. Any number of threads can set and read bits
/// without a lock. Takes no memory until the first bit is set.
@safe
package struct PageBits: ~Copyable, Sendable {
  // SAFETY: the address of the words, or 0, is set once. The words are atomic and are freed with
  // this object.
  private let address = Atomic<UInt>(0)
  private let count: Int
  package static let pageByteCount = 4096

  /// - Parameter byteCount: the size of the file.
  package init(ofFile byteCount: Int) { count = byteCount / Self.pageByteCount + 1 }

  deinit {
    if let words = unsafe words(address.load(ordering: .relaxed)) { unsafe freeMemory(words) }
  }

  /// The bit for the page that contains an offset.
  @inline(__always)
  package subscript(offset: Int) -> Bool {
    let (index, bit) = place(offset)
    guard let words = unsafe words(address.load(ordering: .acquiring)) else { return false }
    return unsafe words[index].load(ordering: .relaxed) & bit != 0
  }

  /// Sets the bit for the page that contains an offset. If there is no memory for the bits, the bit
  /// stays clear.
  package func set(_ offset: Int) {
    let (index, bit) = place(offset)
    var known = address.load(ordering: .acquiring)
    if known == 0 {
      guard let new = unsafe zeroedMemory(byteCount: (count + 63) / 64 * 8) else { return }
      let (isSet, old) = address.compareExchange(
        expected: 0, desired: UInt(bitPattern: new), ordering: .acquiringAndReleasing)
      if isSet {
        known = UInt(bitPattern: new)
      } else {
        unsafe freeMemory(new)
        known = old
      }
    }
    guard let words = unsafe words(known) else { return }
    _ = unsafe words[index].bitwiseOr(bit, ordering: .relaxed)
  }

  @inline(__always)
  private func place(_ offset: Int) -> (index: Int, bit: UInt64) {
    let page = offset / Self.pageByteCount
    precondition(UInt(bitPattern: page) < UInt(bitPattern: count))
    return (page >> 6, 1 << UInt64(page & 63))
  }

  @inline(__always)
  private func words(_ address: UInt) -> UnsafeMutablePointer<Atomic<UInt64>>? {
    unsafe UnsafeMutablePointer(bitPattern: address)
  }
}
