/// When a shard's entries expire.
extension IndexShard {
  @inline(__always)
  mutating func noteDeadline(_ deadline: Deadline?, at slot: Int) {
    if let deadline {
      setDeadline(deadline, at: slot)
    } else {
      deadlines?.table.remove(at: slot)
      if entries[slot].flags.contains(.canExpire) { lacksDeadlines = true }
    }
  }

  /// Sets the deadline found by reading an entry's record and last access.
  mutating func settleDeadline(_ deadline: Deadline, at slot: Int, by now: Int64) {
    setDeadline(deadline, at: slot)
    if deadline.isExact, let deadlines {
      deadlines.table.settledTime = max(deadlines.table.settledTime, now)
    }
  }

  private mutating func setDeadline(_ deadline: Deadline, at slot: Int) {
    makeDeadlines().table.set(deadline, at: slot, slotCount: entries.count)
  }

  private mutating func makeDeadlines() -> DeadlineBox {
    if let deadlines { return deadlines }
    let made = DeadlineBox(DeadlineTable(origin: origin, budget: budget))
    deadlines = made
    return made
  }

  /// Records an access to the entry in a slot.
  mutating func noteAccess(at slot: Int) {
    deadlines?.table.noteAccess(at: slot)
  }

  /// The time before which the entry in a slot does not expire, if known.
  func deadline(at slot: Int) -> Int64? { deadlines?.table.time(at: slot) }

  /// Sets deadlines for the entries that can expire but have none.
  ///
  /// - Throws: `outOfMemory`. The next call tries again.
  mutating func addDeadlines(_ earliest: (IndexEntry) -> Int64) throws(StoreError) {
    if !lacksDeadlines && deadlines?.table.isIncomplete != true { return }
    lacksDeadlines = false
    let deadlines = makeDeadlines()
    deadlines.table.beginCompletion()
    for slot in 0..<entries.count {
      let entry = entries[slot]
      if entry.isEmpty || !entry.flags.contains(.canExpire)
        || deadlines.table.hasDeadline(at: slot)
      {
        continue
      }
      let deadline = Deadline(time: earliest(entry), isExact: false)
      deadlines.table.set(deadline, at: slot, slotCount: entries.count)
    }
    if deadlines.table.isIncomplete {
      throw .outOfMemory(neededByteCount: entries.count * MemoryLayout<UInt32>.stride)
    }
  }

  /// Calls `body` with the slot of each entry that can expire.
  func forEachExpirable(_ body: (Int) -> Void) {
    for slot in 0..<entries.count where !entries[slot].isEmpty {
      if entries[slot].flags.contains(.canExpire) { body(slot) }
    }
  }

  /// Calls `body` with each entry whose deadline has come, and with the state of the deadline.
  ///
  /// - Parameter visitsPassed: whether to include entries that have certainly expired.
  /// - Returns: the number of entries that have certainly expired.
  @inline(__always)
  mutating func forEachDue(
    by time: Int64, present: Int64, visitsPassed: Bool,
    _ body: (IndexEntry, Deadline.State) -> Void
  ) -> Int {
    guard let deadlines else { return 0 }
    deadlines.table.prepare(for: present)
    let found = deadlines.table.forEachDue(by: time, visitsPassed: visitsPassed) { slot, state in
      body(entries[slot], state)
    }
    deadlines.table.noteLowest(found.lowest)
    return found.passedCount
  }
}
