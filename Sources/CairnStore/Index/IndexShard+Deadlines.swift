/// Extended lifetimes and deadlines.
extension IndexShard {
  /// The extended end of an entry's lifetime, or `Int64.min` if not extended.
  func end(of entry: IndexEntry) -> Int64 {
    entry.flags.contains(.extended) ? extensions[entry.location]?.expires ?? .min : .min
  }

  /// The extension of the entry in a slot.
  @inline(__always)
  func extensionOfEntry(at slot: Int) -> LifetimeExtension? {
    let entry = entries[slot]
    return entry.flags.contains(.extended) ? extensions[entry.location] : nil
  }

  /// Sets or removes the extension of the entry in a slot, and returns the old one.
  @discardableResult
  mutating func setExtension(_ new: LifetimeExtension?, at slot: Int) -> LifetimeExtension? {
    let entry = entries[slot]
    var flags = entry.flags
    if new == nil { flags.remove(.extended) } else { flags.insert(.extended) }
    entries[slot] = IndexEntry(
      hash: entry.hash, location: entry.location, tick: entry.tick, flags: flags)
    let old = extensions[entry.location]
    extensions[entry.location] = new
    if new != nil { deadlines?.table.makeInexact(at: slot) }
    return old
  }

  // MARK: Deadlines

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

  /// Calls `body` with each entry whose deadline has come, the state of the deadline, and the
  /// entry's extended end of lifetime (`Int64.min`: not extended).
  ///
  /// - Parameter visitsPassed: whether to include entries that have certainly expired.
  /// - Returns: the number of entries that have certainly expired.
  @inline(__always)
  mutating func forEachDue(
    by time: Int64, present: Int64, visitsPassed: Bool,
    _ body: (IndexEntry, Deadline.State, Int64) -> Void
  ) -> Int {
    guard let deadlines else { return 0 }
    deadlines.table.prepare(for: present)
    let found = deadlines.table.forEachDue(by: time, visitsPassed: visitsPassed) { slot, state in
      body(entries[slot], state, extensionOfEntry(at: slot)?.expires ?? .min)
    }
    deadlines.table.noteLowest(found.lowest)
    return found.passedCount
  }

  /// The slot of the entry with this hash that the record at a location extends.
  func slot(of hash: UInt64, extendedBy location: Location) -> Int? {
    var slot = slot(of: hash)
    while let found = slot {
      if extensionOfEntry(at: found)?.location == location { return found }
      slot = self.slot(of: hash, after: found)
    }
    return nil
  }
}
