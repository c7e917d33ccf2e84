extension IndexShard {
  /// Whether the entries, which are ordered by hash, have no duplicates and fit into a table of
  /// proportional size. Hashes are keyed, so entries that do not fit were forged.
  static func canHold(_ entries: [IndexEntry]) -> Bool {
    for (number, entry) in entries.enumerated() {
      var other = number - 1
      while other >= 0, entries[other].hash == entry.hash {
        // More than eight keys never share a hash by chance, not even in a billion stores.
        if entries[other].location == entry.location || number - other >= 8 { return false }
        other -= 1
      }
    }
    var capacity = 8
    while (entries.count + 1) * 20 > capacity * 17 { capacity *= 2 }
    for _ in 0..<3 where capacity < largestCapacity {
      let end = slotCount(ofCapacity: capacity)
      var next = 0
      let fits = entries.allSatisfy { entry in
        next = max(next, Int((entry.hash &* UInt64(capacity)) >> 40)) + 1
        return next <= end
      }
      if fits { return true }
      capacity *= 2
    }
    return false
  }

  /// Copies entries from one table to another. Returns `false` if the new one is too small.
  static func fill(
    _ new: borrowing EntryTable, capacity: Int,
    from old: borrowing EntryTable,
    keeping isKept: (IndexEntry) -> Bool = { _ in true },
    _ didMove: (_ slot: Int, _ target: Int) -> Void = { _, _ in }
  ) -> Bool {
    var filling = Filling(capacity: capacity)
    for slot in 0..<old.count {
      let entry = old[slot]
      if entry.isEmpty || !isKept(entry) { continue }
      guard filling.add(entry, to: new) else { return false }
      didMove(slot, filling.next - 1)
    }
    return true
  }

  /// Fills a table from front to back.
  struct Filling {
    let capacity: Int
    var next = 0

    init(capacity: Int) { self.capacity = capacity }

    /// Adds the next entry in hash order. Returns `false` if the table is full.
    @inline(__always)
    mutating func add(
      _ entry: IndexEntry, to table: borrowing EntryTable
    ) -> Bool {
      let position = max(next, Int((entry.hash &* UInt64(capacity)) >> 40))
      guard position < table.count else { return false }
      table[position] = entry
      next = position + 1
      return true
    }
  }
}
