internal import Synchronization

/// A table of references that many threads read without a lock.
///
/// The table holds each object strongly. A reader of a slot must ensure that the object stays alive
/// until the reader has retained it. A lock ensures that. So does a pin, if objects removed from
/// slots are retired.
@safe
package final class ReferenceTable<Object: AnyObject>: @unchecked Sendable {
  // SAFETY: slots are words that are published with release ordering and read with acquire
  // ordering. A word is either 0 or the address of an object that the table has retained.
  private let slots: UnsafeMutablePointer<Atomic<UInt>>
  package let slotCount: Int
  /// Slots from here on have never been set, and their memory has never been touched.
  private let end = Atomic(0)

  package init(slotCount: Int) {
    self.slotCount = slotCount
    // Untouched pages take no memory. `calloc` would touch pages that the process has freed before.
    unsafe slots = pageMemory(byteCount: slotCount * MemoryLayout<Atomic<UInt>>.stride)
      .bindMemory(to: Atomic<UInt>.self, capacity: slotCount)
  }

  deinit {
    for slot in 0..<end.load(ordering: .relaxed)
    where unsafe slots[slot].load(ordering: .relaxed) != 0 {
      set(slot, to: nil)
    }
    unsafe freePages(slots, byteCount: slotCount * MemoryLayout<Atomic<UInt>>.stride)
  }

  @inline(__always)
  package subscript(slot: Int) -> Object? {
    guard slot >= 0 && slot < slotCount else { return nil }
    let word = unsafe slots[slot].load(ordering: .acquiring)
    guard let pointer = unsafe UnsafeRawPointer(bitPattern: word) else { return nil }
    return unsafe Unmanaged<Object>.fromOpaque(pointer).takeUnretainedValue()
  }

  /// The object in a slot, kept alive by a pin of this thread.
  @inline(__always)
  func pinned(_ slot: Int) -> Unretained<Object>? {
    guard slot >= 0 && slot < slotCount else { return nil }
    let word = unsafe slots[slot].load(ordering: .acquiring)
    guard let pointer = unsafe UnsafeRawPointer(bitPattern: word) else { return nil }
    return unsafe Unretained(Unmanaged<Object>.fromOpaque(pointer))
  }

  /// Calls `body` with the object in a slot, without retaining it, unless the slot is empty. The
  /// caller must ensure that the slot is not emptied during the call.
  @inline(__always)
  package func withObject(in slot: Int, _ body: (Object) -> Void) {
    guard slot >= 0 && slot < slotCount else { return }
    let word = unsafe slots[slot].load(ordering: .acquiring)
    guard let pointer = unsafe UnsafeRawPointer(bitPattern: word) else { return }
    unsafe Unmanaged<Object>.fromOpaque(pointer)._withUnsafeGuaranteedRef { body($0) }
  }

  /// Puts an object into a slot, or empties the slot.
  package func set(_ slot: Int, to object: Object?) {
    let word =
      if let object { unsafe UInt(bitPattern: Unmanaged.passRetained(object).toOpaque()) } else {
        UInt(0)
      }
    if object != nil { end.max(slot + 1, ordering: .relaxed) }
    let old = unsafe slots[slot].exchange(word, ordering: .acquiringAndReleasing)
    if let pointer = unsafe UnsafeRawPointer(bitPattern: old) {
      unsafe Unmanaged<Object>.fromOpaque(pointer).release()
    }
  }
}
