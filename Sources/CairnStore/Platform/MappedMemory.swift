internal import CCairn

/// A mapped file. Owns the mapping; the last reference unmaps it, so a reader that holds one can
/// go on reading after the file was closed or unlinked.
///
/// All access is checked against the bounds of the mapping. It is the caller's part to stay
/// inside the file, since memory beyond its end raises SIGBUS.
@safe
package final class MappedMemory: @unchecked Sendable {
  // SAFETY: Sendable because the address never changes and bytes that were handed out are never
  // written again: the one appender writes only beyond what readers were told of.
  fileprivate let base: UnsafeMutableRawPointer
  package let byteCount: Int
  private let fileSystem: any FileSystem
  private let path: String
  private let observer: (any MappedWriteObserver)?

  /// Maps `byteCount` bytes of the file from its beginning.
  package init(file: File, byteCount: Int, writable: Bool) throws(StoreError) {
    do {
      unsafe base = try file.fileSystem.map(
        file.descriptor, byteCount: byteCount, writable: writable)
    } catch {
      throw error.storeError(path: file.path)
    }
    self.byteCount = byteCount
    fileSystem = file.fileSystem
    path = file.path
    observer = file.fileSystem.mappedWriteObserver
  }

  deinit { unsafe fileSystem.unmap(base, byteCount: byteCount) }

  /// The bytes of the range, for as long as this mapping is held.
  @_lifetime(borrow self)
  @inline(__always)
  package func bytes(at offset: Int, count: Int) -> RawSpan {
    precondition(offset >= 0 && count >= 0 && offset &+ count <= byteCount)
    // SAFETY: in bounds by the check above; the lifetime is tied to the owner of the mapping.
    let span = unsafe RawSpan(_unsafeStart: UnsafeRawPointer(base + offset), byteCount: count)
    return unsafe _overrideLifetime(span, borrowing: self)
  }

  /// Asks the processor for the bytes of the range, without waiting for them: cache line by cache line.
  @inline(__always)
  package func prefetch(at offset: Int, count: Int) {
    precondition(offset >= 0 && count >= 0 && offset &+ count <= byteCount)
    for line in stride(from: 0, to: count, by: 64) { unsafe cairn_prefetch(base + offset + line) }
  }

  /// Lets `encode` write the range, then tells the simulator's observer, if there is one.
  @inline(__always)
  package func write(at offset: Int, count: Int, _ encode: (inout MutableRawSpan) -> Void) {
    precondition(offset >= 0 && count >= 0 && offset &+ count <= byteCount)
    // SAFETY: in bounds by the check above, and the span does not outlive the call.
    var span = unsafe MutableRawSpan(_unsafeStart: base + offset, byteCount: count)
    encode(&span)
    if let observer {
      unsafe observer.didWrite(
        mapping: UInt(bitPattern: base), offset: offset, byteCount: count)
    }
  }

  /// Makes stray writes into the mapping fault.
  package func makeReadOnly() throws(StoreError) {
    do { unsafe try fileSystem.protect(base, byteCount: byteCount) } catch {
      throw error.storeError(path: path)
    }
  }

  /// Takes the pages out of the mapping, all at once; they stay in the system's cache, and the next look
  /// at one puts it back.
  package func unmapPages() { unsafe fileSystem.unmapPages(base, byteCount: byteCount) }

  /// Asks for the pages of the range to be made ready for writing.
  package func prefault(at offset: Int, count: Int) {
    precondition(offset >= 0 && count >= 0 && offset + count <= byteCount)
    unsafe fileSystem.prefault(base + offset, byteCount: count)
  }
}
/// Bytes at a fixed address, kept valid by an owner for as long as this value lives: part of a
/// mapping, or a copy of its own.
///
/// One strong reference is taken for all the looks at the bytes that follow.
@safe
package struct PinnedBytes<Owner: AnyObject>: ~Copyable {
  // SAFETY: `base` points into a mapping that `owner` keeps, or to memory that `deinit` frees.
  package let owner: Owner
  private let base: UnsafeRawPointer
  package let count: Int
  private let isCopy: Bool

  /// Part of a mapping, which must be held by `owner`.
  @inline(__always)
  fileprivate init(owner: consuming Owner, base: UnsafeRawPointer, count: Int) {
    self.owner = owner
    unsafe self.base = unsafe base
    self.count = count
    isCopy = false
  }

  /// A copy of the bytes.
  package init(owner: Owner, copying bytes: [UInt8]) {
    self.owner = owner
    count = bytes.count
    isCopy = true
    let copy = unsafe alignedMemory(byteCount: max(bytes.count, 1))
    unsafe bytes.withUnsafeBytes { source in
      unsafe copy.copyMemory(
        from: source.baseAddress ?? UnsafeRawPointer(copy), byteCount: source.count)
    }
    unsafe base = UnsafeRawPointer(copy)
  }

  deinit {
    if isCopy { unsafe freeMemory(UnsafeMutableRawPointer(mutating: base)) }
  }

  /// All of the bytes.
  package var bytes: RawSpan {
    @_lifetime(borrow self)
    @inline(__always)
    get {
      // SAFETY: valid while this value lives, as said above.
      let span = unsafe RawSpan(_unsafeStart: base, byteCount: count)
      return unsafe _overrideLifetime(span, borrowing: self)
    }
  }
}

extension MappedMemory {
  /// The bytes of the range, valid while `owner`, which holds this mapping, lives.
  @inline(__always)
  package func pinned<Owner: AnyObject>(
    at offset: Int, count: Int, by owner: consuming Owner
  ) -> PinnedBytes<Owner> {
    precondition(offset >= 0 && count >= 0 && offset &+ count <= byteCount)
    return unsafe PinnedBytes(owner: owner, base: UnsafeRawPointer(base + offset), count: count)
  }
}
