internal import Synchronization

/// Words in a mapped page of a file: one process stores them, others load them. Each word is stored
/// and loaded whole. A process that sees a word also sees everything stored before it.
@safe
package final class SharedPage: @unchecked Sendable {
  // SAFETY: the address never changes, the mapping lasts as long as this object, and words are
  // atomic.
  private let base: UnsafeMutableRawPointer
  private let fileSystem: any FileSystem
  private let observer: (any MappedWriteObserver)?
  /// Kept open, because the process that maps the page may hold a lock on its file.
  package let file: File

  package static let byteCount = 4096

  /// Maps the first page of a file that is at least one page long.
  package init(_ file: File, writable: Bool) throws(StoreError) {
    // In a copy of a store, the page may share its block or be a hole. A store into the mapping would
    // then take a block, and raise SIGBUS if there is none. This write takes it, or throws.
    if writable { try file.rewrite(0..<Self.byteCount, skippingZeros: false) }
    do {
      unsafe base = try file.fileSystem.map(
        file.descriptor, byteCount: Self.byteCount, writable: writable)
    } catch {
      throw error.storeError(path: file.path)
    }
    self.file = file
    fileSystem = file.fileSystem
    observer = file.fileSystem.mappedWriteObserver
  }

  deinit { unsafe fileSystem.unmap(base, byteCount: Self.byteCount) }

  @inline(__always)
  private func word(_ offset: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
    precondition(offset >= 0 && offset & 7 == 0 && offset < Self.byteCount)
    return unsafe (base + offset).assumingMemoryBound(to: Atomic<UInt64>.self)
  }

  /// The word at an offset in bytes, which is a multiple of 8.
  @inline(__always)
  package func load(_ offset: Int) -> UInt64 {
    unsafe UInt64(littleEndian: word(offset).pointee.load(ordering: .acquiring))
  }

  /// Stores a word, then notifies the simulator's observer, if there is one.
  @inline(__always)
  package func store(_ value: UInt64, at offset: Int) {
    unsafe word(offset).pointee.store(value.littleEndian, ordering: .releasing)
    if observer != nil { tellObserver(offset) }
  }

  @inline(never)
  private func tellObserver(_ offset: Int) {
    unsafe observer?.didWrite(mapping: UInt(bitPattern: base), offset: offset, byteCount: 8)
  }
}
