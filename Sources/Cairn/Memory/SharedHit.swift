internal import Synchronization

/// A look-up beside others; see `SharedReaders`.
@usableFromInline
struct SharedQuery<Key: Hashable & Sendable> {
  @usableFromInline let key: Key
  @usableFromInline let hash: UInt32
  @usableFromInline let now: Int64
  /// Whether to find a value only while a report to the tier below is scheduled, which then covers
  /// this read.
  @usableFromInline let needsReport: Bool

  @inlinable
  init(_ key: Key, hash: UInt32, at now: Int64, needsReport: Bool = false) {
    self.key = key
    self.hash = hash
    self.now = now
    self.needsReport = needsReport
  }
}

/// Hits beside each other.
extension MemoryState: SharedState {
  /// The value of a key, if nothing but bits of its entry must change, and the order of use.
  @inlinable
  @inline(__always)
  func sharedFind(
    _ query: borrowing SharedQuery<Key>, in stripe: Int, of readers: borrowing SharedReaders,
    isFull: inout Bool
  ) -> Value? {
    if query.needsReport, !isTellingScheduled { return nil }
    let slot = table.find(query.key, hash: query.hash)
    if slot == noSlot { return nil }
    let hit = table.nodes.noteSharedHit(
      slot, at: query.now, policy: policy, doubtful: doubtful, isAboveOther: isAboveOther,
      in: stripe, of: readers)
    if hit == .noted { return table.payloads[Int(slot)]?.value }
    isFull = hit == .needsRoom
    return nil
  }

  @inlinable
  mutating func makeMoves(of readers: borrowing SharedReaders) {
    if policy == .leastRecentlyUsed { table.list.makeMoves(of: readers, &table.nodes) }
  }
}

/// The result of an attempt to note a hit beside other readers.
@usableFromInline
enum SharedHit {
  case noted
  case needsLock
  /// The stripe has noted as many moves as it can.
  case needsRoom
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
  /// Notes a hit beside other readers: sets bits and the time of the access, and notes a move.
  ///
  /// Bits that another reader sets at the same moment may be set once instead of twice.
  ///
  /// - Parameters:
  ///   - doubtful: entries with tags are in doubt below this version.
  ///   - isAboveOther: whether a tier below must learn of reads.
  /// - Returns: `needsLock` if the entry has expired, has an idle limit, is in doubt, or the tier
  ///   below does not know that it was read.
  @usableFromInline
  func noteSharedHit(
    _ slot: UInt32, at now: Int64, policy: EvictionPolicy, doubtful: UInt64, isAboveOther: Bool,
    in stripe: Int, of readers: borrowing SharedReaders
  ) -> SharedHit {
    let index = Int(slot)
    guard self[index].expires > now else { return .needsLock }
    guard self[index].idleLimit == never else { return .needsLock }
    let hit = withAtomic(UInt64.self, at: index, offset: EntryNode.markOffset) { mark in
      let old = EntryMark(mark.load(ordering: .relaxed))
      if doubtful != 0, old.hasTags, old.version < doubtful { return SharedHit.needsLock }
      if isAboveOther, !old.isRead { return .needsLock }
      if policy == .leastRecentlyUsed {
        return readers.noteMove(of: slot, in: stripe) ? .noted : .needsRoom
      }
      let noted = old.used(policy)
      if noted.bits != old.bits {
        _ = mark.compareExchange(expected: old.bits, desired: noted.bits, ordering: .relaxed)
      }
      return .noted
    }
    if hit == .noted {
      withAtomic(Int64.self, at: index, offset: EntryNode.accessedOffset) { accessed in
        if now > accessed.load(ordering: .relaxed) { accessed.max(now, ordering: .relaxed) }
      }
    }
    return hit
  }
}

extension EntryNode {
  fileprivate static var markOffset: Int { MemoryLayout<Self>.offset(of: \.mark) ?? 0 }
  fileprivate static var accessedOffset: Int { MemoryLayout<Self>.offset(of: \.accessed) ?? 0 }
}
