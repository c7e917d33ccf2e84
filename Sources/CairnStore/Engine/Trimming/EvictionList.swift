/// The eviction order for limits that hold at every write: exactly the least recently used first,
/// at O(1) per removal.
///
/// Removals consume a list of the least recently used entries from its beginning. Each removal also
/// collects part of the next list from some shards: the entries with a tick below a bound. Ticks
/// only grow, so an entry that is not in the list, or has been used since, was used later than all
/// the list's entries, and the order is exact.
struct EvictionList: ~Copyable {
  /// The list, in the order of removal. The candidates before `next` are gone.
  private var candidates: [RemovalCandidate] = []
  private var next = 0
  /// The list being collected: entries with a tick below `bound`, from the shards before `shard`.
  private var collected: [RemovalCandidate] = []
  private var bound: UInt64 = 0
  private var shard = HashIndex.shardCount
  /// The shard whose ticks represent all shards when a bound is chosen. The shards take turns.
  private var sampledShard = 0
  private var entries: [IndexEntry] = []
  /// Increases with each list.
  private(set) var number = 0
  /// Whether this is the first list. No other list is being collected yet.
  private var isFirst = false

  private var remainingCount: Int { candidates.count - next }
  private var isCollecting: Bool { shard < HashIndex.shardCount }

  /// The length of a list for an index with this many entries.
  private static func length(count: Int) -> Int { min(max(1024, count / 64), 1 << 16) }

  /// Begins with a known list of entries in the order of their ticks. When the list was made, no
  /// other entry had a lower tick than its last one.
  mutating func start(with known: [RemovalCandidate]) {
    candidates = known
    next = 0
    isFirst = !known.isEmpty
  }

  /// Takes up to `count` entries to remove next. Returns none only if the index is empty.
  ///
  /// A taken entry that is not removed is found again only in a later list.
  mutating func take(
    _ count: Int, from index: HashIndex
  ) throws(StoreError) -> [RemovalCandidate] {
    if !isCollecting && remainingCount - count < candidates.count / 2 { try begin(in: index) }
    if isCollecting {
      // The next list must be ready when an eighth of this one is left.
      let lead = max(count, remainingCount - candidates.count / 8)
      let left = HashIndex.shardCount - shard
      try collect((left * count + lead - 1) / lead, of: index)
    }
    if remainingCount == 0 {
      if !isCollecting { try begin(in: index) }
      try collect(HashIndex.shardCount, of: index)
    }
    if remainingCount == 0 {
      // All entries below the bound have been used since it was chosen.
      try begin(in: index)
      try collect(HashIndex.shardCount, of: index)
    }
    if remainingCount == 0 {
      try begin(in: index, all: true)
      try collect(HashIndex.shardCount, of: index)
    }
    let end = min(next + count, candidates.count)
    defer { next = end }
    return Array(candidates[next..<end])
  }

  /// Puts back the last entries taken. They are the next to be taken.
  mutating func putBack(_ count: Int) { next -= count }

  /// Collects a part of the first list. Returns `true` once it is ready.
  mutating func collectFirst(from index: HashIndex) throws(StoreError) -> Bool {
    if !isCollecting {
      if remainingCount > 0 && !isFirst { return true }
      try begin(in: index)
    }
    try collect(1, of: index)
    return !isCollecting
  }

  private mutating func begin(in index: HashIndex, all: Bool = false) throws(StoreError) {
    let count = index.count
    let length = Self.length(count: count)
    collected.removeAll(keepingCapacity: true)
    shard = 0
    isFirst = false
    // Include all entries, even those that are read before their shard is reached.
    bound = all ? .max : index.recency.now + 1
    if all || count <= 4 * length { return }
    // Hashes are independent of ticks, so one shard is a fair sample.
    for _ in 0..<HashIndex.shardCount {
      try index.copyEntries(ofShard: sampledShard, into: &entries)
      sampledShard = (sampledShard + 1) % HashIndex.shardCount
      if entries.isEmpty { continue }
      let ticks = entries.map(\.tick).sorted()
      bound = min(bound, ticks[ticks.count * length / count] + 1)
      return
    }
  }

  private mutating func collect(_ shardCount: Int, of index: HashIndex) throws(StoreError) {
    let end = min(HashIndex.shardCount, shard + shardCount)
    while shard < end {
      try index.copyEntries(ofShard: shard, into: &entries)
      for entry in entries where entry.tick < bound {
        collected.append(RemovalCandidate(entry, inShard: shard, rank: entry.tick))
      }
      shard += 1
    }
    guard shard == HashIndex.shardCount else { return }
    collected.sort { $0.goesBefore($1) }
    swap(&candidates, &collected)
    collected.removeAll(keepingCapacity: true)
    next = 0
    number += 1
  }
}
