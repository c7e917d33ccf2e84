extension IndexShard {
  /// Appends all entries, in the order of their hashes.
  func appendEntries(to result: inout [IndexEntry]) {
    result.reserveCapacity(result.count + count)
    for slot in 0..<entries.count where !entries[slot].isEmpty { result.append(entries[slot]) }
  }

  /// All entries, in the order of their hashes.
  func allEntries() -> [IndexEntry] {
    var result: [IndexEntry] = []
    appendEntries(to: &result)
    return result
  }
}
