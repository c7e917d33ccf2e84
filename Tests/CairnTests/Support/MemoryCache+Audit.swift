import Dispatch
import Foundation

@testable import Cairn

extension MemoryCache {
  /// The number of observers.
  var observerCount: Int { lock.withLock { $0.observers.count } }

  /// Hits that ran in parallel, without the mutex.
  var sharedHitCount: UInt64 {
    lock.withLock(forReading: true) { _ in lock.readers.hitCount }
  }

  /// Lets hits run in parallel, by a read that has to wait.
  func shareHits() {
    let ended = DispatchSemaphore(value: 0)
    lock.withLock { _ in
      Thread.detachNewThread { [self] in
        lock.withLock(forReading: true) { _ in }
        ended.signal()
      }
      while lock.readers.waitingCount == 0 { Thread.sleep(forTimeInterval: 0.001) }
    }
    ended.wait()
  }

  /// Inconsistencies in the cache. Empty if the cache is sound.
  func audit() -> [String] {
    lock.withLock { state in
      var faults = state.table.audit()
      if state.table.count > state.countLimit { faults.append("over the count limit") }
      if state.table.totalCost > state.costLimit {
        faults.append("over the cost limit")
      }
      return faults
    }
  }
}

extension MemoryTable {
  /// Inconsistencies between the parts of the table.
  func audit() -> [String] {
    var faults: [String] = []
    func expect(_ holds: Bool, _ fault: @autoclosure () -> String) {
      if !holds { faults.append(fault()) }
    }
    var used: Set<UInt32> = []
    var cost: UInt128 = 0
    var expirable = 0
    var slot = list.newest
    var newer = noSlot
    while slot != noSlot {
      let node = nodes[Int(slot)]
      expect(used.insert(slot).inserted, "slot \(slot) is in the list twice")
      expect(node.newer == newer, "slot \(slot) has the wrong neighbour")
      cost += UInt128(node.cost)
      if node.heapIndex != noSlot { expirable += 1 }
      expect(
        node.heapIndex != noSlot || (node.expires == never && node.idleLimit == never),
        "slot \(slot) can expire and is not in the heap")
      if let key = key(slot) {
        expect(Self.hash(key) == node.hash, "slot \(slot) has another key's hash")
        expect(find(key, hash: node.hash) == slot, "slot \(slot) is not found")
      } else {
        expect(false, "slot \(slot) is in use and empty")
      }
      newer = slot
      slot = node.older
      if used.count > count { break }
    }
    expect(list.oldest == newer, "the list ends elsewhere")
    faults += auditQueues()
    expect(used.count == count, "\(used.count) in the list, \(count) counted")
    expect(cost == totalCost, "a cost of \(cost), \(totalCost) counted")
    expect(deadlines.count == expirable, "\(deadlines.count) in the heap, \(expirable) expected")
    faults += deadlines.audit(nodes)
    expect(list.hand == noSlot || used.contains(list.hand), "the hand points to a free slot")
    var free = firstFree
    var freeCount = 0
    while free != noSlot && freeCount <= nodes.count {
      expect(!isUsed(Int(free)) && !used.contains(free), "slot \(free) is free and in use")
      freeCount += 1
      free = nodes[Int(free)].older
    }
    expect(freeCount + count == nodes.count, "\(freeCount) slots free of \(nodes.count)")
    expect(buckets.count == count, "\(buckets.count) buckets filled, \(count) entries")
    return faults
  }

  /// Inconsistencies in the queues of S3-FIFO. The list must be sound.
  private func auditQueues() -> [String] {
    var faults = ghosts.audit()
    var (small, cost) = (0, UInt128(0))
    var slot = list.newest
    var newestSmall = noSlot
    while slot != noSlot && small <= count {
      let node = nodes[Int(slot)]
      if node.isSmall {
        if newestSmall == noSlot { newestSmall = slot }
        small += 1
        cost += UInt128(node.cost)
      } else if newestSmall != noSlot {
        faults.append("slot \(slot) of the main queue is in the small one")
      }
      slot = node.older
    }
    if list.newestSmall != newestSmall { faults.append("the small queue begins elsewhere") }
    if small != list.smallCount || cost != list.smallCost {
      faults.append("\(small) small of cost \(cost), \(list.smallCount), \(list.smallCost) counted")
    }
    return faults
  }
}

extension GhostQueue {
  /// Inconsistencies.
  func audit() -> [String] {
    var faults: [String] = []
    if !(kept...next).contains(first) { faults.append("ghosts before or after the pages") }
    var found: Set<UInt32> = []
    for number in kept..<next {
      let hash = pages[number / Self.pageCount - kept / Self.pageCount][number % Self.pageCount]
      let short = Self.short(number)
      if buckets.find(hash, where: { $0 == short }) == noSlot { continue }
      if !found.insert(hash).inserted { faults.append("a ghost occurs twice") }
    }
    if found.count != buckets.count { faults.append("a ghost is not in the pages") }
    return faults
  }
}

extension DeadlineHeap {
  /// Inconsistencies.
  func audit(_ nodes: borrowing PagedArray<EntryNode>) -> [String] {
    (0..<items.count).compactMap { index in
      let item = items[index]
      if nodes[Int(item.slot)].heapIndex != UInt32(index) {
        return "slot \(item.slot) is not at its place in the heap"
      }
      if item.deadline > nodes[Int(item.slot)].deadline {
        return "slot \(item.slot) expires before its deadline in the heap"
      }
      if index > 0, items[(index - 1) / 2].deadline > item.deadline {
        return "slot \(item.slot) is out of order in the heap"
      }
      return nil
    }
  }
}
