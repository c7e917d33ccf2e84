import CairnStore
import Testing

@Suite("Selecting the entries to remove first")
struct CandidateSelectionTests {
  func candidate(rank: UInt64, tick: UInt64) -> RemovalCandidate {
    RemovalCandidate(
      IndexEntry(hash: 1, location: Location(rawValue: tick), tick: tick, flags: []), inShard: 3,
      rank: rank)
  }

  /// Orders that a selection could get wrong.
  static let orders: [String] = ["random", "rising", "falling", "equal", "saw"]

  @Test(
    "The first candidates come in order, as a sort returns them", arguments: orders,
    [1, 2, 100, 4095, 4096, 30_000, 100_000])
  func selection(order: String, limit: Int) {
    var generator = Seed.generator()
    let count = 30_000
    let candidates = (0..<count).map { number in
      let rank: UInt64 =
        switch order {
        case "random": UInt64.random(in: 0..<10_000, using: &generator)
        case "rising": UInt64(number)
        case "falling": UInt64(count - number)
        case "equal": 7
        default: UInt64(number % 100)
        }
      return candidate(rank: rank, tick: UInt64(number * 7919 % count + 1))
    }
    var selection = CandidateSelection(limit: limit)
    for candidate in candidates { selection.add(candidate) }
    let expected = candidates.sorted {
      ($0.rank, $0.entry.tick) < ($1.rank, $1.entry.tick)
    }
    .prefix(limit).map(\.entry.tick)
    #expect(selection.sorted().map(\.entry.tick) == expected, Seed.comment)
  }

  @Test("Nothing to select from returns nothing")
  func empty() {
    #expect(CandidateSelection(limit: 5).sorted().isEmpty)
  }

  @Test("A candidate leads back to its entry")
  func hash() throws {
    let index = HashIndex(recency: RecencyClock(now: .distantFuture))
    let hash: UInt64 = 0x1234_5678_9ABC_DEF0
    index.insert(hash, location: Location(rawValue: 77), flags: .canExpire)
    var entries: [IndexEntry] = []
    try index.copyEntries(ofShard: 0xF0, into: &entries)
    #expect(entries.count == 1)
    let candidate = RemovalCandidate(entries[0], inShard: 0xF0, rank: 1)
    var tick: UInt64 = 0
    #expect(index.find(candidate.hash, at: Location(rawValue: 77)) { tick = $0.tick })
    #expect(tick == entries[0].tick)
    #expect(!index.find(candidate.hash, at: Location(rawValue: 78)) { _ in })
  }
}
