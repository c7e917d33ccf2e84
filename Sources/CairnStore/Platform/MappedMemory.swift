internal import CCairn

/// A mapped file. Owns the mapping. The last reference unmaps it, so a reader with a reference can
/// keep reading after the file has been closed or unlinked.
///
/// All access is checked against the bounds of the mapping. The caller must stay inside the file,
/// because memory beyond its end raises SIGBUS.
@safe
package final class MappedMemory: @unchecked Sendable {
  // SAFETY: Sendable, because the address never changes and published bytes are never written
  // again. The single appender writes only beyond what readers can reach.
  fileprivate let base: UnsafeMutableRawPointer
  package let byteCount: Int
  private let fileSystem: any FileSystem
  private let path: String
  private let observer: (any MappedWriteObserver)?

  /// Maps `byteCount` bytes from the beginning of the file.
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

  /// Prefetches the bytes of the range, cache line by cache line, without waiting for them.
  @inline(__always)
  package func prefetch(at offset: Int, count: Int) {
    precondition(offset >= 0 && count >= 0 && offset &+ count <= byteCount)
    for line in stride(from: 0, to: count, by: 64) { unsafe cairn_prefetch(base + offset + line) }
  }

  /// Lets `encode` write the range, then notifies the simulator's observer, if there is one.
  @inline(__always)
  package func write(at offset: Int, count: Int, _ encode: (inout MutableRawSpan) -> Void) {
    precondition(offset >= 0 && count >= 0 && offset &+ count <= byteCount)
    // SAFETY: in bounds by the check above, and the span does not outlive the call.
    let bytes = unsafe UnsafeMutableRawBufferPointer(start: base + offset, count: count)
    var span = unsafe bytes.mutableBytes
    encode(&span)
    if observer != nil { tellObserver(offset, count) }
  }

  @inline(never)
  private func tellObserver(_ offset: Int, _ count: Int) {
    unsafe observer?.didWrite(
      mapping: UInt(bitPattern: base), offset: offset, byteCount: count)
  }

  /// Makes stray writes into the mapping fault.
  package func makeReadOnly() throws(StoreError) {
    do { unsafe try fileSystem.protect(base, byteCount: byteCount) } catch {
      throw error.storeError(path: path)
    }
  }

  /// Removes all pages from the mapping at once. The pages stay in the page cache, and the next
  /// access maps them again.
  package func unmapPages() { unsafe fileSystem.unmapPages(base, byteCount: byteCount) }

  /// Asks the kernel to prepare the pages of the range for writing.
  package func prefault(at offset: Int, count: Int) {
    precondition(offset >= 0 && count >= 0 && offset + count <= byteCount)
    unsafe fileSystem.prefault(base + offset, byteCount: count)
  }
}
/// Bytes at a fixed address, kept valid by an owner for as long as this value lives: part of a
/// mapping, or a separate copy.
@safe
package struct PinnedBytes<Owner: AnyObject>: ~Copyable {
  /// How the owner is kept alive.
  private enum Hold {
    /// A pin of this thread, which ends later than this value.
    case pin
    /// A hazard slot of the thread that was pinned.
    case hazard(Hazard)
    case reference
    /// A reference; the bytes are a copy.
    case copy
  }

  // SAFETY: `base` points into a mapping that the owner keeps alive, or to memory that `deinit`
  // frees; `hold` shows how the owner is kept alive.
  private let reference: Unmanaged<Owner>
  private let base: UnsafeRawPointer
  package let count: Int
  private var hold: Hold

  /// Part of a mapping that `owner` must hold.
  @inline(__always)
  fileprivate init(
    reference: Unmanaged<Owner>, base: UnsafeRawPointer, count: Int, isPinned: Bool
  ) {
    unsafe self.reference = unsafe reference
    unsafe self.base = unsafe base
    self.count = count
    hold = isPinned ? .pin : .reference
  }

  /// Part of the mapping of an owner that a pin of this thread keeps alive. The pin must end later
  /// than this value. `nil` if the owner has no mapping.
  @inline(__always)
  init?(
    of owner: Unretained<Owner>, at offset: Int, count: Int, in mapping: (Owner) -> MappedMemory?
  ) {
    let start = unsafe owner.withObject { owner -> UnsafeRawPointer? in
      guard let mapping = mapping(owner) else { return nil }
      precondition(offset >= 0 && count >= 0 && offset &+ count <= mapping.byteCount)
      return unsafe UnsafeRawPointer(mapping.base + offset)
    }
    guard let base = unsafe start else { return nil }
    unsafe self.init(reference: owner.reference, base: base, count: count, isPinned: true)
  }

  /// A copy of the bytes.
  package init(owner: Owner, copying bytes: [UInt8]) {
    unsafe reference = Unmanaged.passRetained(owner)
    count = bytes.count
    hold = .copy
    let copy = unsafe alignedMemory(byteCount: max(bytes.count, 1))
    unsafe bytes.withUnsafeBytes { source in
      unsafe copy.copyMemory(
        from: source.baseAddress ?? UnsafeRawPointer(copy), byteCount: source.count)
    }
    unsafe base = UnsafeRawPointer(copy)
  }

  @inline(__always)
  deinit {
    switch hold {
    case .pin: break
    case .hazard(let hazard): hazard.end()
    case .reference: unsafe reference.release()
    case .copy:
      unsafe freeMemory(UnsafeMutableRawPointer(mutating: base))
      unsafe reference.release()
    }
  }

  /// Keeps the owner alive beyond the current pin: in the thread's slot if the slot is free, else
  /// by a reference.
  @inline(__always)
  mutating func keep() {
    guard case .pin = hold else { return }
    if let hazard = withOwner({ Hazard(holding: $0) }) {
      hold = .hazard(hazard)
    } else {
      unsafe _ = reference.retain()
      hold = .reference
    }
  }

  package var owner: Owner {
    @inline(__always) get { unsafe reference.takeUnretainedValue() }
  }

  /// Calls `body` with the owner, without retaining it.
  @inline(__always)
  package func withOwner<Result>(_ body: (Owner) -> Result) -> Result {
    unsafe reference._withUnsafeGuaranteedRef { body($0) }
  }

  /// All of the bytes.
  package var bytes: RawSpan {
    @_lifetime(borrow self)
    @inline(__always)
    get {
      // SAFETY: valid while this value lives, as stated above.
      let span = unsafe RawSpan(_unsafeStart: base, byteCount: count)
      return unsafe _overrideLifetime(span, borrowing: self)
    }
  }
}

extension MappedMemory {
  /// The bytes of the range, valid while `owner` lives. `owner` must hold this mapping.
  @inline(__always)
  package func pinned<Owner: AnyObject>(
    at offset: Int, count: Int, by owner: consuming Owner
  ) -> PinnedBytes<Owner> {
    precondition(offset >= 0 && count >= 0 && offset &+ count <= byteCount)
    return unsafe PinnedBytes(
      reference: .passRetained(owner), base: UnsafeRawPointer(base + offset), count: count,
      isPinned: false)
  }
}

/// An object that is not retained, because something else keeps it alive for as long as this value
/// is used: a pin of this thread, or a strong reference that cannot change in the meantime.
@safe
@usableFromInline
package struct Unretained<Object: AnyObject> {
  // SAFETY: the reference is used only while the object is kept alive.
  @usableFromInline let reference: Unmanaged<Object>

  @inline(__always)
  init(_ reference: Unmanaged<Object>) { unsafe self.reference = unsafe reference }

  @inlinable
  @inline(__always)
  package init(_ object: Object) { unsafe reference = Unmanaged.passUnretained(object) }

  @inlinable
  @inline(__always)
  package func withObject<Result>(_ body: (Object) -> Result) -> Result {
    unsafe reference._withUnsafeGuaranteedRef { body($0) }
  }
}
