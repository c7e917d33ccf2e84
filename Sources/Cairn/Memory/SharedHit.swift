internal import Synchronization

/// Hits of SIEVE and S3-FIFO beside each other; see `SharedReaders`.
extension MemoryState {
  /// The value of a key, if nothing but bits of its entry must change.
  @inlinable
  @inline(__always)
  func sharedValue(of key: Key, hash: UInt32, at now: Int64) -> Value? {
    let slot = table.find(key, hash: hash)
    guard slot != noSlot,
      table.nodes.noteSharedHit(
        Int(slot), at: now, policy: policy, doubtful: doubtful, isAboveOther: isAboveOther)
    else { return nil }
    return table.payloads[Int(slot)]?.value
  }
}

extension SlotArray<EntryNode> {
  /// Notes a hit beside other readers: sets bits, and the time of the access.
  ///
  /// Bits that another reader sets at the same moment may be set once instead of twice.
  ///
  /// - Parameters:
  ///   - doubtful: entries with tags are in doubt up to this version.
  ///   - isAboveOther: whether a tier below must learn of reads.
  /// - Returns: `false` if the entry needs the lock: it has expired, has an idle limit, is in doubt, or
  ///   the tier below does not know that it was read.
  @usableFromInline
  func noteSharedHit(
    _ index: Int, at now: Int64, policy: EvictionPolicy, doubtful: UInt64, isAboveOther: Bool
  ) -> Bool {
    withSharedElement(at: index) { node in
      guard node.expires > now else { return false }
      guard node.idleLimit == never else { return false }
      let isNoted = withAtomic(&node.mark) { mark in
        let old = EntryMark(mark.load(ordering: .relaxed))
        if doubtful != 0, old.hasTags, old.version <= doubtful { return false }
        if isAboveOther, !old.isRead { return false }
        let noted = old.used(policy)
        if noted.bits != old.bits {
          _ = mark.compareExchange(expected: old.bits, desired: noted.bits, ordering: .relaxed)
        }
        return true
      }
      guard isNoted else { return false }
      withAtomic(&node.accessed) { accessed in
        if now > accessed.load(ordering: .relaxed) { accessed.max(now, ordering: .relaxed) }
      }
      return true
    }
  }
}
