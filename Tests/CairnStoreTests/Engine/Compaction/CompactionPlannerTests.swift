import Testing

@testable import CairnStore

@Suite("Which segments are compacted next")
struct CompactionPlannerTests {
  /// A segment of 1,000 bytes, half of them dead.
  private func facts(
    _ id: UInt64, candidate: Bool = true, byteCount: Int = 1000, live: Int = 500,
    livePuts: Int = 5, deadPuts: Int = 5, tombstones: Int = 0, highestTombstone: UInt64 = 0,
    lowest: UInt64, highest: UInt64? = nil, compactedAt: UInt64 = 0, sealed: Bool? = nil
  ) -> SegmentFacts {
    SegmentFacts(
      id: SegmentID(rawValue: id), isCandidate: candidate, isSealed: sealed ?? candidate,
      byteCount: byteCount, liveByteCount: live, livePutCount: livePuts, deadPutCount: deadPuts,
      tombstoneByteCount: tombstones, highestTombstone: highestTombstone, lowestSequence: lowest,
      highestSequence: highest ?? lowest + 10, compactedAt: compactedAt)
  }

  private func planner(_ segments: [SegmentFacts], budget: Int = 1000) -> CompactionPlanner {
    CompactionPlanner(segments, segmentByteCount: 1000, budget: budget)
  }

  private func ids(_ numbers: UInt64...) -> [SegmentID] { numbers.map { SegmentID(rawValue: $0) } }

  @Test("A log that only grows is not rewritten because its segments have become small")
  func growing() {
    let segments = (0..<200 as Range<UInt64>).map {
      facts(
        $0 + 1, byteCount: 1 << 20, live: 1 << 20, livePuts: 1000, deadPuts: 0,
        lowest: 1000 * $0 + 1, highest: 1000 * $0 + 1000)
    }
    let planner = CompactionPlanner(segments, segmentByteCount: 16 << 20, budget: 128 << 20)
    #expect(planner.nextRound(isOverBound: false).isEmpty)
  }

  @Test("The barrier is the first number whose tombstones a segment needs")
  func barrier() {
    func barrier(_ lowest: UInt64, _ compactedAt: UInt64, _ dead: Int) -> UInt64 {
      TombstoneRule.barrier(lowestSequence: lowest, compactedAt: compactedAt, deadPutCount: dead)
    }
    #expect(barrier(10, 0, 1) == 10)
    #expect(barrier(10, 50, 1) == 51)
    #expect(barrier(10, 5, 1) == 10)
    #expect(barrier(10, 0, 0) == .max)
  }

  @Test("On a full disk, a round takes the segments that gain most, as far as their copies fit")
  func mostGain() {
    let segments = (1...6 as ClosedRange<UInt64>).map {
      facts($0, byteCount: 100_000, live: 10_000 * Int($0), lowest: 100 * $0)
    }
    func ids(_ goal: Int, budget: Int, without excluded: Set<SegmentID> = []) -> [UInt64] {
      planner(segments, budget: budget)
        .mostGain(highestCost: 8, goal: goal, without: excluded).map(\.id.rawValue)
    }
    #expect(ids(.max, budget: 0) == [1])
    #expect(ids(.max, budget: 59_000) == [1, 2])
    #expect(ids(.max, budget: 61_000) == [1, 2, 3])
    #expect(ids(.max, budget: .max) == [1, 2, 3, 4, 5, 6])
    #expect(ids(90_000, budget: .max) == [1])
    #expect(ids(90_001, budget: .max) == [1, 2])
    #expect(ids(.max, budget: 0, without: Set([segments[0].id])) == [2])
  }

  @Test("Segments without a live put go at once, unless their tombstones are needed")
  func wholeDead() {
    let dead = facts(1, live: 0, livePuts: 0, lowest: 1)
    let laterTombstones = facts(
      2, live: 0, livePuts: 0, deadPuts: 0, tombstones: 900, highestTombstone: 40, lowest: 20)
    let blocker = facts(3, lowest: 10)
    let open = facts(4, candidate: false, live: 0, livePuts: 0, lowest: 60)
    #expect(planner([dead, laterTombstones, blocker, open]).wholeDeadSegments() == Set(ids(1)))
    #expect(planner([dead, laterTombstones, open]).wholeDeadSegments() == Set(ids(1, 2)))
    // A segment that has to stay keeps another's tombstones.
    let both = facts(
      5, live: 0, livePuts: 0, deadPuts: 1, tombstones: 500, highestTombstone: 39, lowest: 30)
    let needsBoth = facts(
      6, live: 0, livePuts: 0, deadPuts: 0, tombstones: 500, highestTombstone: 31, lowest: 31)
    #expect(planner([both, needsBoth, blocker]).wholeDeadSegments() == [])
  }

  @Test("The highest gain per copied byte comes first, within the budget")
  func gain() {
    let little = facts(1, live: 900, lowest: 1)
    let much = facts(2, live: 100, lowest: 20)
    let middle = facts(3, live: 500, lowest: 40)
    let none = facts(4, live: 1000, deadPuts: 0, lowest: 60)
    let all = [little, much, middle, none]
    #expect(planner(all, budget: 600).nextRound(isOverBound: true) == ids(2, 3))
    #expect(planner(all, budget: 1).nextRound(isOverBound: true) == ids(2))
    #expect(planner(all, budget: 600).nextRound(isOverBound: false) == [])
    #expect(planner([little, none]).nextRound(isOverBound: true) == [], "not worth it")
  }

  @Test("Among segments with the same gain, the older comes first, but age alone does not decide")
  func age() {
    func aged(_ id: UInt64, live: Int, lowest: UInt64, compactedAt: UInt64 = 0) -> SegmentFacts {
      facts(id, live: live, livePuts: 400, lowest: lowest, compactedAt: compactedAt)
    }
    func first(_ segments: SegmentFacts..., isUrgent: Bool = false) -> [SegmentID] {
      planner(segments, budget: 1).nextRound(isOverBound: true, isUrgent: isUrgent)
    }
    let old = aged(1, live: 500, lowest: 1)
    let young = aged(2, live: 480, lowest: 950)
    let newest = facts(3, candidate: false, livePuts: 400, lowest: 1000)
    #expect(first(young, old, newest) == ids(1))
    // When writers will soon have to wait, only the gain counts.
    #expect(first(young, old, newest, isUrgent: true) == ids(2))
    let nearlyDead = aged(4, live: 20, lowest: 950)
    #expect(first(nearlyDead, old, newest) == ids(4))
    // A recently copied segment is young, however old its records are.
    let copied = aged(5, live: 480, lowest: 1, compactedAt: 990)
    #expect(first(copied, old, newest) == ids(1))
    // After as many writes as there are entries, age makes no further difference.
    let last = facts(6, candidate: false, livePuts: 400, lowest: 1_000_000)
    #expect(first(young, old, last) == ids(2))
  }

  @Test("Tombstones that must stay are no gain; the segments that need them are compacted instead")
  func blockers() {
    let blocker = facts(1, live: 990, deadPuts: 1, lowest: 1)
    let waiting = facts(
      2, live: 100, deadPuts: 0, tombstones: 900, highestTombstone: 90, lowest: 50)
    #expect(planner([blocker, waiting]).nextRound(isOverBound: true) == ids(1))
    // Once rewritten, a segment needs no tombstone from before.
    let rewritten = facts(3, live: 990, deadPuts: 1, lowest: 1, compactedAt: 95)
    #expect(planner([rewritten, waiting]).nextRound(isOverBound: true) == ids(2))
    // Segments that cannot be compacted keep tombstones for good.
    let damaged = facts(1, candidate: false, live: 990, deadPuts: 1, lowest: 1)
    #expect(planner([damaged, waiting]).nextRound(isOverBound: true) == [])
  }

  @Test("Small segments are merged once many have accumulated")
  func small() {
    let few = (1...7).map { facts($0, byteCount: 100, live: 100, deadPuts: 0, lowest: $0) }
    #expect(planner(few).nextRound(isOverBound: false) == [])
    let many = few + [facts(8, byteCount: 100, live: 100, deadPuts: 0, lowest: 8)]
    #expect(planner(many).nextRound(isOverBound: false).count == 8)
  }

  @Test("In a manual compaction, rounds begin with the lowest barriers")
  func rounds() {
    let segments = [
      facts(1, live: 600, lowest: 1, compactedAt: 70), facts(2, live: 600, lowest: 40),
      facts(3, live: 300, lowest: 20), facts(4, live: 900, deadPuts: 0, lowest: 80),
    ]
    #expect(planner(segments).allRounds() == [ids(3, 2), ids(1)])
  }

  @Test("Tombstones that waited for a segment of a later round are dropped after it")
  func remainders() {
    // Written by a compaction after the other segment was begun and before it got its tombstones.
    let copied = facts(1, live: 900, lowest: 27, compactedAt: 43)
    let writtenTo = facts(2, live: 900, tombstones: 50, highestTombstone: 46, lowest: 43)
    #expect(planner([copied, writtenTo]).allRounds() == [ids(2), ids(1)])
    let rewritten = facts(
      3, live: 900, deadPuts: 0, tombstones: 50, highestTombstone: 46, lowest: 43, compactedAt: 50)
    #expect(planner([copied, rewritten]).remainingRounds() == [])
    let other = facts(4, live: 900, deadPuts: 0, lowest: 27, compactedAt: 50)
    #expect(planner([other, rewritten]).remainingRounds() == [ids(3)])
    #expect(planner([other]).remainingRounds() == [])
  }

  @Test("Small segments are merged only if one copy can hold the numbers of all")
  func smallSegments() {
    let span = UInt64(UInt32.max)
    func small(_ number: UInt64, lowest: UInt64, highest: UInt64? = nil) -> SegmentFacts {
      facts(number, byteCount: 100, live: 100, deadPuts: 0, lowest: lowest, highest: highest)
    }
    let near = (1...8).map { small($0, lowest: 100 * $0) }
    #expect(planner(near).nextRound(isOverBound: false) == ids(1, 2, 3, 4, 5, 6, 7, 8))
    #expect(planner(Array(near.dropLast())).nextRound(isOverBound: false) == [])
    // Each is too far from the first of any eight.
    let far = (1...20).map { small($0, lowest: span / 7 * $0 + 1) }
    #expect(planner(far).nextRound(isOverBound: false) == [])
    let wide = small(9, lowest: 150, highest: 150 + span)
    #expect(planner(Array(near.dropLast()) + [wide]).nextRound(isOverBound: false) == [])
    // A group that is near comes after ones that are far, in any order.
    let group = (21...28).map { small($0, lowest: span * 9 + $0) }
    let found = planner((far + group).reversed()).nextRound(isOverBound: false)
    #expect(Set(found) == Set(group.map(\.id)))
  }

  @Test("An unreadable segment promises no gain after a roll")
  func unreadable() {
    let unreadable = facts(1, candidate: false, live: 0, lowest: 1, sealed: true)
    let written = facts(2, candidate: false, live: 0, lowest: 20)
    func promises(_ segments: SegmentFacts...) -> Bool {
      planner(segments).hasGainWhereWritten(atLeast: 100, highestCost: .max)
    }
    #expect(!promises(unreadable))
    #expect(promises(unreadable, written))
  }
}
