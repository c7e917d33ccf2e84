internal import Synchronization

/// Hits beside each other.
extension MemoryState: SharedState {
  /// The value of a key, if nothing but bits of its entry must change, and the order of use.
  ///
  /// - Parameters:
  ///   - needsReport: whether to find a value only while a report to the tier below is scheduled,
  ///     which then covers this read.
  ///   - isFull: set if the stripe has no room for the move.
  @inlinable
  @inline(__always)
  func sharedFind(
    _ key: Key, hash: UInt32, at now: Int64, needsReport: Bool = false, in stripe: Int,
    of readers: borrowing SharedReaders, isFull: inout Bool
  ) -> Value? {
    if needsReport, !isTellingScheduled { return nil }
    let slot = table.find(key, hash: hash)
    if slot == noSlot { return nil }
    let isNoted = table.nodes.noteSharedHit(
      Int(slot), at: now, policy: policy, doubtful: doubtful, isAboveOther: isAboveOther)
    if !isNoted { return nil }
    if policy == .leastRecentlyUsed, !readers.noteMove(of: slot, in: stripe) {
      isFull = true
      return nil
    }
    return table.payloads[Int(slot)]?.value
  }

  @inlinable
  mutating func makeMoves(of readers: borrowing SharedReaders) {
    if policy == .leastRecentlyUsed { table.list.makeMoves(of: readers, &table.nodes) }
  }
}

extension RecencyList {
  @usableFromInline
  mutating func makeMoves(
    of readers: borrowing SharedReaders, _ nodes: inout SlotArray<EntryNode>
  ) {
    readers.takeMoves { touch($0, policy: .leastRecentlyUsed, &nodes) }
  }
}

extension SlotArray<EntryNode> {
  /// Notes a hit beside other readers: sets bits, and the time of the access.
  ///
  /// Bits that another reader sets at the same moment may be set once instead of twice.
  ///
  /// - Parameters:
  ///   - doubtful: entries with tags are in doubt below this version.
  ///   - isAboveOther: whether a tier below must learn of reads.
  /// - Returns: `false` if the entry needs the lock: it has expired, has an idle limit, is in doubt, or
  ///   the tier below does not know that it was read.
  @usableFromInline
  func noteSharedHit(
    _ index: Int, at now: Int64, policy: EvictionPolicy, doubtful: UInt64, isAboveOther: Bool
  ) -> Bool {
    guard self[index].expires > now else { return false }
    guard self[index].idleLimit == never else { return false }
    let isNoted = withAtomic(UInt64.self, at: index, offset: EntryNode.markOffset) { mark in
      let old = EntryMark(mark.load(ordering: .relaxed))
      if doubtful != 0, old.hasTags, old.version < doubtful { return false }
      if isAboveOther, !old.isRead { return false }
      let noted = old.used(policy)
      if noted.bits != old.bits {
        _ = mark.compareExchange(expected: old.bits, desired: noted.bits, ordering: .relaxed)
      }
      return true
    }
    if isNoted {
      withAtomic(Int64.self, at: index, offset: EntryNode.accessedOffset) { accessed in
        if now > accessed.load(ordering: .relaxed) { accessed.max(now, ordering: .relaxed) }
      }
    }
    return isNoted
  }
}

extension EntryNode {
  fileprivate static var markOffset: Int { MemoryLayout<Self>.offset(of: \.mark) ?? 0 }
  fileprivate static var accessedOffset: Int { MemoryLayout<Self>.offset(of: \.accessed) ?? 0 }
}
