import Cairn

/// The row of a cache at its limit.
extension Worker {
  /// Requests values by Zipf's law, and stores each that is missing. The store may use a third of
  /// the bytes of all values. If it has no limit of its own, the caller removes the values that were
  /// used least recently, as a cache over a folder does.
  func request(_ round: Round) throws -> RoundResult {
    let path = configuration.directory + "/limited"
    DirectoryTree.remove(path)
    let data = data
    let all = (0..<data.keyCount).reduce(0) { $0 + data.byteCount(of: $1) }
    let limit = max(8 << 20, all / 3)
    var options = storeOptions(.process)
    options.diskByteLimit = limit
    let store = try Store(at: path, options: options)
    var random = round.random
    let indices = KeySequence.zipf(keyCount: data.keyCount, random: &random).indices
    var uses = Store.abilities.contains(.limits) ? nil : RecentUses(data, byteLimit: limit)
    var hitCount = 0
    func request(_ call: Int) throws {
      let index = Int(indices[call & (indices.count - 1)])
      let value = try data.key(index).withBytes { key throws in try store.value(forKey: key) }
      if let value {
        hitCount += 1
        let difference = value.withBytes {
          data.difference($0, index: index, generation: 0, isThorough: call & 15 == 0)
        }
        if let difference { throw mismatch(round.workload, index, difference) }
      } else {
        try data.key(index).withBytes { key throws in
          try data.value(index, generation: 0).withBytes { value throws in
            try store.setValue(value, forKey: key)
          }
        }
      }
      for evicted in uses?.use(index) ?? [] {
        try data.key(evicted).withBytes { key throws in _ = try store.removeValue(forKey: key) }
      }
    }
    for call in 0..<2 * data.keyCount { try request(call) }
    hitCount = 0
    let measurement = try Measurement.run(
      pace(round, maximumCallCount: 4 * data.keyCount)
    ) { call in try request(2 * data.keyCount + call) }
    let (disk, peak) = (DirectoryTree.allocatedByteCount(path), ProcessMemory.peakByteCount)
    try store.close()
    DirectoryTree.remove(path)
    var result = RoundResult(measurement, diskByteCount: disk, peakResidentByteCount: peak)
    result.hitCount = hitCount
    return result
  }
}

/// Exact LRU over the bytes of values, each in whole blocks, for stores without a limit.
private struct RecentUses {
  private let data: Dataset
  private let byteLimit: Int
  private var byteCount = 0
  /// The number of the last use of each key, or 0 if its value is not stored.
  private var lastUses: [Int]
  /// All uses since the one at `first`. Only the last one of a key counts.
  private var queue: [Int] = []
  private var first = 1

  init(_ data: Dataset, byteLimit: Int) {
    (self.data, self.byteLimit) = (data, byteLimit)
    lastUses = Array(repeating: 0, count: data.keyCount)
  }

  /// Counts a use, of a value that was stored if it was missing. Returns the keys to remove.
  mutating func use(_ index: Int) -> [Int] {
    if lastUses[index] == 0 { byteCount += size(index) }
    queue.append(index)
    lastUses[index] = queue.count
    var evicted: [Int] = []
    while byteCount > byteLimit {
      let oldest = queue[first - 1]
      if lastUses[oldest] == first {
        lastUses[oldest] = 0
        byteCount -= size(oldest)
        evicted.append(oldest)
      }
      first += 1
    }
    return evicted
  }

  private func size(_ index: Int) -> Int { (data.byteCount(of: index) + 4_095) & ~4_095 }
}
