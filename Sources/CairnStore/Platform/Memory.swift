internal import CairnLibC

// Raw memory, and access to unaligned little-endian integers in it.

/// Zeroed memory, to be freed with `freeMemory`, or `nil` if there is none.
func zeroedMemory(byteCount: Int) -> UnsafeMutableRawPointer? {
  unsafe calloc(1, byteCount)
}

/// A table of at least this size has its own pages, and the kernel may make them huge.
private let pagedByteCount = 64 << 10

/// Zeroed memory for a table with random lookups, to be freed with `freeTable`; `nil` if there is
/// none.
///
/// With huge pages, a lookup that misses the processor's caches does not also miss its TLB.
/// Adjacent tables share a huge page.
func tableMemory(byteCount: Int) -> UnsafeMutableRawPointer? {
  if byteCount < pagedByteCount { return unsafe zeroedMemory(byteCount: byteCount) }
  let address = unsafe mmap(
    nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
  guard let address = unsafe address, unsafe address != MAP_FAILED else { return nil }
  // A kernel without huge pages refuses. The table works without them too.
  unsafe adviseHugePages(address, byteCount: byteCount)
  return unsafe address
}

func freeTable(_ memory: UnsafeMutableRawPointer, byteCount: Int) {
  if byteCount < pagedByteCount {
    unsafe free(memory)
  } else {
    // `munmap` fails if there are too many mappings. Then return at least the pages.
    if unsafe munmap(memory, byteCount) != 0 { unsafe madvise(memory, byteCount, MADV_DONTNEED) }
  }
}

/// The index consults this budget before it takes memory. Injected, so that a test can run out of
/// memory.
package final class MemoryBudget: Sendable {
  /// Whether this many bytes may be taken.
  package let permits: @Sendable (_ byteCount: Int) -> Bool

  package init(permits: @escaping @Sendable (_ byteCount: Int) -> Bool) { self.permits = permits }

  /// As much as the system provides.
  package static let unlimited = MemoryBudget { _ in true }
}

/// Memory on separate cache lines, to be freed with `freeMemory`.
func alignedMemory(byteCount: Int) -> UnsafeMutableRawPointer {
  guard let memory = unsafe aligned_alloc(128, (byteCount + 127) & ~127) else {
    fatalError("out of memory")
  }
  return unsafe memory
}

/// Separate zeroed pages, to be freed with `freePages`.
func pageMemory(byteCount: Int) -> UnsafeMutableRawPointer {
  let address = unsafe mmap(
    nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
  guard let address = unsafe address, unsafe address != MAP_FAILED else {
    fatalError("out of memory")
  }
  return unsafe address
}

func freePages(_ memory: UnsafeMutableRawPointer, byteCount: Int) {
  unsafe munmap(memory, byteCount)
}

func freeMemory(_ memory: UnsafeMutableRawPointer) {
  unsafe free(memory)
}

extension RawSpan {
  /// The little-endian integer at `offset`, which need not be aligned.
  @inline(__always)
  package func load<Value: FixedWidthInteger & BitwiseCopyable>(
    _ type: Value.Type, at offset: Int
  ) -> Value {
    // SAFETY: the load checks its bounds, and every bit pattern is a valid integer.
    Value(littleEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: type))
  }

  /// A copy of the bytes.
  @inline(__always)
  package func copied() -> [UInt8] {
    // SAFETY: the buffer is live for the call. This initializer is specialised in the standard
    // library; the one with uninitialized capacity took twice as long when measured, because it
    // looks up metadata.
    unsafe withUnsafeBytes { unsafe [UInt8]($0) }
  }

  /// Whether both spans have the same bytes.
  @inline(__always)
  package func equals(_ other: RawSpan) -> Bool {
    guard byteCount == other.byteCount else { return false }
    // SAFETY: both buffers are live for the call and of the same length.
    return unsafe withUnsafeBytes { left in
      unsafe other.withUnsafeBytes { right in
        guard let leftBase = left.baseAddress, let rightBase = right.baseAddress else {
          return true
        }
        return unsafe memcmp(leftBase, rightBase, left.count) == 0
      }
    }
  }

  /// Whether the bytes begin with `prefix`.
  package func starts(with prefix: RawSpan) -> Bool {
    byteCount >= prefix.byteCount && extracting(0..<prefix.byteCount).equals(prefix)
  }

  /// Whether every byte is zero.
  package var isZero: Bool {
    if byteCount == 0 { return true }
    // `memcmp` compares many bytes at a time.
    return load(UInt8.self, at: 0) == 0
      && extracting(0..<byteCount - 1).equals(extracting(1..<byteCount))
  }
}

extension [UInt8] {
  /// Bytes that the caller fills before it reads them. Zeroing a window would take longer than
  /// reading a small file into it.
  init(unfilled count: Int) {
    // SAFETY: every bit pattern is a byte.
    unsafe self.init(unsafeUninitializedCapacity: count) { $1 = count }
  }
}

extension MutableRawSpan {
  /// Stores the integer in little-endian order at `offset`, which need not be aligned.
  @inline(__always)
  @_lifetime(self: copy self)
  package mutating func store<Value: FixedWidthInteger & BitwiseCopyable>(
    _ value: Value, at offset: Int
  ) {
    storeBytes(of: value.littleEndian, toByteOffset: offset, as: Value.self)
  }

  /// Copies all of `source` to `offset`.
  @inline(__always)
  @_lifetime(self: copy self)
  package mutating func copy(_ source: RawSpan, to offset: Int) {
    precondition(offset >= 0 && offset &+ source.byteCount <= byteCount)
    // SAFETY: in bounds by the check above.
    unsafe withUnsafeMutableBytes { target in
      unsafe source.withUnsafeBytes { source in
        if let base = source.baseAddress, let targetBase = target.baseAddress {
          unsafe memcpy(targetBase + offset, base, source.count)
        }
      }
    }
  }

  /// Sets `count` bytes from `offset` to zero.
  @inline(__always)
  @_lifetime(self: copy self)
  package mutating func zero(at offset: Int, count: Int) {
    var offset = offset
    let end = offset + count
    while offset < end {
      storeBytes(of: 0, toByteOffset: offset, as: UInt8.self)
      offset += 1
    }
  }
}

extension [UInt8] {
  /// Appends the integer in little-endian order.
  package mutating func append<Value: FixedWidthInteger>(littleEndian value: Value) {
    for shift in stride(from: 0, to: Value.bitWidth, by: 8) {
      append(UInt8(truncatingIfNeeded: value >> Value(shift)))
    }
  }

  /// Appends a copy of the bytes.
  @inline(__always)
  package mutating func append(contentsOf bytes: RawSpan) {
    // SAFETY: the buffer is live for the call.
    unsafe bytes.withUnsafeBytes { unsafe append(contentsOf: $0) }
  }

  /// The bytes for reading.
  package var rawSpan: RawSpan {
    // SAFETY: bytes have no padding.
    @_lifetime(borrow self) @inline(__always) get { unsafe span.bytes }
  }

  /// Calls `body` with the bytes for writing.
  @inline(__always)
  package mutating func withMutableSpan<Result: ~Copyable, Failure: Error>(
    _ body: (inout MutableRawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var elements = mutableSpan
    // SAFETY: bytes have no padding, and every bit pattern is a valid byte.
    var bytes = unsafe elements.mutableBytes
    return try body(&bytes)
  }

  /// Calls `body` with the bytes of the range for writing.
  @inline(__always)
  package mutating func withMutableSpan(
    in range: Range<Int>, _ body: (inout MutableRawSpan) -> Void
  ) {
    precondition(range.lowerBound >= 0 && range.upperBound <= count)
    // SAFETY: in bounds by the check above, and the span does not outlive the call.
    unsafe withUnsafeMutableBytes { buffer in
      let part = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[range])
      var bytes = unsafe part.mutableBytes
      body(&bytes)
    }
  }
}
