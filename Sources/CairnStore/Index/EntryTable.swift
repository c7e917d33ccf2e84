/// Slots for entries, two words each. Only the holder of the shard's lock changes them, except for
/// ticks (`SeenEntry.touch`). Lookups without the lock see each word whole. The shard's version
/// shows whether two words belong together, except for a tick: its parts may be from two moments.
struct EntryTable: ~Copyable {
  let words: SharedWords

  /// A table without slots, which takes no memory.
  init() { words = SharedWords() }

  /// A table of empty slots.
  ///
  /// - Parameter capacity: the capacity that determines each entry's home slot.
  /// - Throws: `outOfMemory`.
  init(slotCount: Int, capacity: Int, budget: MemoryBudget) throws(StoreError) {
    words = try SharedWords(zeroCount: slotCount * 2, label: UInt64(capacity), budget: budget)
  }

  var count: Int { @inline(__always) get { words.count >> 1 } }
  var byteCount: Int { words.byteCount }

  subscript(slot: Int) -> IndexEntry {
    @inline(__always) get { IndexEntry(words[slot &* 2], words[slot &* 2 &+ 1]) }
    @inline(__always) nonmutating set {
      words[slot &* 2] = newValue.words.0
      words[slot &* 2 &+ 1] = newValue.words.1
    }
  }

  /// Moves `length` entries from `source` to `target`; the ranges may overlap.
  @inline(__always)
  func move(from source: Int, to target: Int, length: Int) {
    if source < target {
      for offset in stride(from: length - 1, through: 0, by: -1) {
        self[target &+ offset] = self[source &+ offset]
      }
    } else {
      for offset in 0..<length { self[target &+ offset] = self[source &+ offset] }
    }
  }
}

/// An entry found without the shard's lock, and its slot.
package struct SeenEntry {
  package let entry: IndexEntry
  private let view: SharedWords.View
  let slot: Int

  /// The result of looking for a hash without the lock.
  package enum Look {
    /// The first entry.
    case entry(SeenEntry)
    case none
  }

  /// The first entry with this hash, if any. The table is ordered by hash, and the search starts at
  /// the hash's home.
  @inline(__always)
  static func first(of hash: UInt64, in view: SharedWords.View) -> Look {
    let slotCount = view.count >> 1
    var slot = Int((hash &* view.label) >> 40)
    while slot < slotCount {
      let entry = IndexEntry(view[slot &* 2], view[slot &* 2 &+ 1])
      if entry.isEmpty || entry.hash > hash { return .none }
      if entry.hash == hash { return .entry(SeenEntry(entry: entry, view: view, slot: slot)) }
      slot &+= 1
    }
    return .none
  }

  /// Gives the entry a later tick, unless the entry has changed. Returns `false` if that needs the
  /// lock.
  ///
  /// A concurrent change of the shard may undo this.
  @inline(__always)
  package func touch(_ tick: UInt64) -> Bool {
    var touched = entry
    touched.tick = tick
    // The upper part of a tick is in the other word, and changes once in 16 million ticks.
    guard touched.words.1 == entry.words.1 else { return false }
    view.exchange(slot &* 2, from: entry.words.0, to: touched.words.0)
    return true
  }
}
