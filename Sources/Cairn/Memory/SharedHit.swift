internal import Synchronization

/// The parameters, besides the key, of a lookup that runs in parallel with others; see
/// `SharedReaders`.
@usableFromInline
struct SharedQuery {
  @usableFromInline let hash: UInt32
  @usableFromInline let now: Int64
  /// The share of its lifetime during which a value is found.
  @usableFromInline let calmShare: Double

  @inlinable
  init(hash: UInt32, at now: Int64, calmShare: Double = 1) {
    self.hash = hash
    self.now = now
    self.calmShare = calmShare
  }
}

/// Parallel hits.
extension MemoryState: SharedState {
  /// The value of a key, if the hit only has to change atomic words of its entry.
  @inlinable
  @inline(__always)
  func sharedFind(_ key: Key, _ query: SharedQuery) -> Value? {
    let slot = table.find(key, hash: query.hash)
    if slot == noSlot { return nil }
    if !table.nodes[Int(slot)].isCalm(at: query.now, share: query.calmShare) { return nil }
    let isNoted = table.nodes.noteSharedHit(Int(slot), at: query.now, policy: policy)
    return isNoted ? table.value(slot) : nil
  }
}

extension PagedArray<EntryNode> {
  /// Records a hit in parallel with other readers: changes bits and the access time.
  ///
  /// If two readers count a use at the same moment, it may be counted once instead of twice.
  ///
  /// - Returns: `false` if the entry needs the lock: it has expired or has an idle limit.
  @usableFromInline
  func noteSharedHit(_ index: Int, at now: Int64, policy: EvictionPolicy) -> Bool {
    guard self[index].expires > now else { return false }
    guard self[index].idleLimit == never else { return false }
    withAtomic(UInt64.self, at: index, offset: EntryNode.markOffset) { mark in
      let old = EntryMark(mark.load(ordering: .relaxed))
      let noted = old.used(policy)
      if noted.bits != old.bits {
        _ = mark.compareExchange(expected: old.bits, desired: noted.bits, ordering: .relaxed)
      }
    }
    withAtomic(Int64.self, at: index, offset: EntryNode.accessedOffset) { accessed in
      if now > accessed.load(ordering: .relaxed) { accessed.max(now, ordering: .relaxed) }
    }
    return true
  }
}

extension EntryNode {
  fileprivate static var markOffset: Int { MemoryLayout<Self>.offset(of: \.mark) ?? 0 }
  fileprivate static var accessedOffset: Int { MemoryLayout<Self>.offset(of: \.accessed) ?? 0 }
}
