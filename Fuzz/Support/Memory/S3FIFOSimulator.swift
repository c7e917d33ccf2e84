/// S3-FIFO in simple arrays with linear searches, for comparison with `EvictionPolicy.s3FIFO`.
///
/// The policy is that of Yang, Zhang, Qiu, Yue and Rashmi, "FIFO queues are all you need for cache
/// eviction" (SOSP 2023), Algorithm 1, in the form of libCacheSim's `S3FIFO.c`. In particular:
/// - Shares: the small queue has a tenth of the limit, at least 1, in the unit of the limit that is
///   exceeded: entries, or their cost. It gives up an entry if it has its share without the new
///   entry, or if the main queue has none. The paper and libCacheSim check whether the main queue
///   has more than its share, which is equivalent if entries cost 1.
/// - Bit cap: an entry counts its uses up to 3. A new one has none. A write to an existing key is a
///   use.
/// - Threshold: at the end of the small queue, an entry with 2 uses or more goes to the main queue
///   and forgets its uses. Any other is evicted and becomes a ghost. At the end of the main queue,
///   an entry with a use gives up one use and goes back to the beginning.
/// - Ghosts: the last evictions from the small queue. There are nine tenths as many as the entries
///   left after the last eviction, whatever their cost. A ghost that returns goes to the main
///   queue. It leaves a gap, which still counts as a ghost. In libCacheSim, a gap does not count,
///   which changes the hit ratio by at most 0.1 points. Ghosts are identified by their hashes.
/// - Warm-up, as in newer libCacheSim: until an entry is evicted to make room, a new one that fits
///   goes to the main queue if the small queue has its share, in entries or in cost. Cairn's
///   addition: the same after a trim, after a limit was set, and when the cache has become empty.
///   Without limits, the share is a tenth of the entries.
/// - Cairn's addition: a new entry is inserted before others are evicted for it. It is not itself
///   evicted then: at the end of the main queue, it goes back to the beginning. Expired entries go
///   first, by their deadline, and do not become ghosts. A write removes at most 4 such entries,
///   and more only instead of evictions. A trim evicts by the number of entries. An eviction moves
///   at most 256 entries; the next one is then evicted although it was used.
package struct S3FIFOSimulator {
  private struct Entry {
    var key: Int
    var hash: UInt32
    var cost: Int
    var deadline: Int64?
    var useCount = 0

    mutating func noteUse() { useCount = min(3, useCount + 1) }

    func hasExpired(at now: Int64) -> Bool { deadline.map { $0 <= now } == true }
  }

  /// The oldest first, as in the other queues.
  private var small: [Entry] = []
  private var main: [Entry] = []
  /// `nil` for a gap.
  private var ghosts: [UInt32?] = []
  private var countLimit: Int?
  private var costLimit: Int?
  private var isFilling = true
  package var now: Int64 = 0

  package init(countLimit: Int?, costLimit: Int?) {
    self.countLimit = countLimit
    self.costLimit = costLimit
  }

  /// All keys that have not expired: those of the main queue and then those of the small one, the
  /// newest first.
  package var keys: [Int] {
    (small + main).reversed().filter { !$0.hasExpired(at: now) }.map(\.key)
  }

  private var count: Int { small.count + main.count }
  private var cost: Int { Self.cost(of: small) + Self.cost(of: main) }

  private static func cost(of entries: [Entry]) -> Int { entries.reduce(0) { $0 + $1.cost } }

  private func entry(_ key: Int) -> Entry? {
    small.first { $0.key == key } ?? main.first { $0.key == key }
  }

  // MARK: Calls

  /// - Returns: whether it is a hit.
  package mutating func read(_ key: Int) -> Bool {
    guard let entry = entry(key) else { return false }
    if entry.hasExpired(at: now) {
      remove(key)
      return false
    }
    change(key) { $0.noteUse() }
    return true
  }

  /// - Parameters:
  ///   - hash: identifies a ghost.
  ///   - deadline: when it expires; later than now.
  package mutating func set(_ key: Int, hash: UInt32, cost: Int = 0, deadline: Int64? = nil) {
    if countLimit.map({ $0 <= 0 }) == true || costLimit.map({ cost > $0 }) == true {
      return remove(key)
    }
    if entry(key) != nil {
      change(key) { entry in
        entry.noteUse()
        (entry.cost, entry.deadline) = (cost, deadline)
      }
    } else {
      let entry = Entry(key: key, hash: hash, cost: cost, deadline: deadline)
      if goesToSmall(entry) { small.append(entry) } else { main.append(entry) }
    }
    for _ in 0..<4 { _ = removeOneExpired() }
    keepLimits(sparing: key)
  }

  package mutating func remove(_ key: Int) {
    let wasEmpty = count == 0
    small.removeAll { $0.key == key }
    main.removeAll { $0.key == key }
    if count == 0 && !wasEmpty { isFilling = true }
  }

  package mutating func setLimits(countLimit: Int?, costLimit: Int?) {
    self.countLimit = countLimit
    self.costLimit = costLimit
    isFilling = true
    keepLimits(sparing: nil)
  }

  package mutating func trim(toCount limit: Int) {
    while removeOneExpired() {}
    while count > limit { removeNext(byCost: false, sparing: nil) }
  }

  package mutating func trim(toCost limit: Int) {
    while removeOneExpired() {}
    while cost > limit { removeNext(byCost: false, sparing: nil) }
  }

  // MARK: The policy

  private mutating func change(_ key: Int, _ body: (inout Entry) -> Void) {
    if let index = small.firstIndex(where: { $0.key == key }) {
      body(&small[index])
    } else if let index = main.firstIndex(where: { $0.key == key }) {
      body(&main[index])
    }
  }

  private mutating func goesToSmall(_ entry: Entry) -> Bool {
    if let place = ghosts.firstIndex(of: entry.hash) {
      ghosts[place] = nil
      return false
    }
    let fits = count < countLimit ?? .max && cost + entry.cost <= costLimit ?? .max
    if !isFilling || !fits { return true }
    if countLimit == nil && costLimit == nil { return small.count < max(1, count / 10) }
    let hasCount = countLimit.map { small.count >= max(1, $0 / 10) } ?? false
    let hasCost = costLimit.map { Self.cost(of: small) >= max(1, $0 / 10) } ?? false
    return !hasCount && !hasCost
  }

  private mutating func removeOneExpired() -> Bool {
    let expired = small.filter { $0.hasExpired(at: now) } + main.filter { $0.hasExpired(at: now) }
    guard let next = expired.min(by: { ($0.deadline ?? 0) < ($1.deadline ?? 0) }) else {
      return false
    }
    remove(next.key)
    return true
  }

  private mutating func keepLimits(sparing spared: Int?) {
    while count > countLimit ?? .max { removeNext(byCost: false, sparing: spared) }
    while cost > costLimit ?? .max { removeNext(byCost: true, sparing: spared) }
  }

  private mutating func removeNext(byCost: Bool, sparing spared: Int?) {
    if removeOneExpired() { return }
    isFilling = spared == nil
    let limit = byCost ? costLimit ?? .max : min(countLimit ?? .max, count)
    var moveCount = 0
    while true {
      defer { moveCount += 1 }
      let others = small.filter { $0.key != spared }
      let size = byCost ? Self.cost(of: others) : others.count
      let hasMain = main.contains { $0.key != spared }
      if var first = others.first, !hasMain || size >= max(1, limit / 10) {
        small.removeAll { $0.key == first.key }
        if first.useCount < 2 || moveCount >= 256 { return addGhost(first.hash) }
        first.useCount = 0
        main.append(first)
      } else {
        var first = main.removeFirst()
        if first.key != spared && (first.useCount == 0 || moveCount >= 256) { return }
        first.useCount = max(0, first.useCount - 1)
        main.append(first)
      }
    }
  }

  private mutating func addGhost(_ hash: UInt32) {
    if let place = ghosts.firstIndex(of: hash) { ghosts[place] = nil }
    ghosts.append(hash)
    ghosts.removeFirst(max(0, ghosts.count - count * 9 / 10))
  }
}
