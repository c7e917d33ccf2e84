/// Chooses the segments to compact next, from facts about the segments alone.
///
/// A plan never counts a gain that does not exist, so a compaction that follows it makes progress
/// in every round, and ends.
package struct CompactionPlanner: Sendable {
  /// The segments of the log, in any order.
  package let segments: [SegmentFacts]
  /// The size at which a segment is full.
  package let segmentByteCount: Int
  /// How many bytes a round may write, unless one segment alone has more.
  package let budget: Int
  /// How many bytes of records a round may read for each byte that it may write.
  package static let readFactor = 4
  /// Segments that keep tombstones from being dropped, the lowest barrier first. A damaged segment
  /// keeps only some, which a round finds when it reads them.
  private let blocking: [SegmentFacts]

  /// Small segments are worth merging once there are this many.
  package static let smallSegmentCount = 8
  /// A rewrite must reclaim at least one byte for this many bytes written.
  package static let highestCost = 8

  package init(_ segments: [SegmentFacts], segmentByteCount: Int, budget: Int) {
    self.segments = segments
    self.segmentByteCount = segmentByteCount
    self.budget = budget
    blocking = segments.filter { $0.barrier < .max && !$0.isDamaged }.sorted {
      $0.barrier < $1.barrier
    }
  }

  /// The barrier that all segments except `inputs` impose.
  package func barrier(without inputs: Set<SegmentID>) -> SequenceNumber {
    blocking.first { !inputs.contains($0.id) }?.barrier ?? .max
  }

  /// Bytes that compaction could reclaim from some segments without copying too much.
  package func gain(of isCounted: (SegmentFacts) -> Bool) -> Int {
    let barrier = barrier(without: [])
    return segments.reduce(0) { sum, facts in
      let gain = facts.gain(barrier)
      return isCounted(facts) && facts.cost(barrier) / Self.highestCost <= gain
        ? sum + gain : sum
    }
  }

  /// Bytes that compaction could reclaim if no segment were damaged.
  package var heldByteCount: Int {
    segments.reduce(0) {
      $0 + $1.heldByteCount + ($1.isDamaged ? $1.byteCount - max(0, $1.liveByteCount) : 0)
    }
  }

  /// Segments that contain no needed record. They are removed without being read.
  package func wholeDeadSegments() -> Set<SegmentID> {
    var dead = segments.filter { ($0.isCandidate || $0.isDamaged) && $0.livePutCount == 0 }
    while true {
      let ids = Set(dead.map(\.id))
      let barrier = segments.reduce(.max) { ids.contains($1.id) ? $0 : min($0, $1.barrier) }
      let count = dead.count
      // Segments that must stay may keep others from being removed.
      dead.removeAll { !$0.canDropTombstones(barrier) }
      if dead.count == count { return ids }
    }
  }

  /// The segments that the next round should compact together, or none if no round is worthwhile.
  ///
  /// - Parameters:
  ///   - isOverBound: whether space must be reclaimed. If not, only small segments are merged.
  ///   - highestCost: how many bytes may be written for each byte reclaimed.
  ///   - isUrgent: whether writers will soon have to wait. Segments with the highest gain per
  ///     copied byte then come first, whatever their age.
  package func nextRound(
    isOverBound: Bool, highestCost: Int = Self.highestCost, isUrgent: Bool = false
  ) -> [SegmentID] {
    if isOverBound {
      let inputs = bestGain(highestCost: highestCost, isUrgent: isUrgent)
      if !inputs.isEmpty { return inputs }
    }
    return smallSegments()
  }

  /// The segments with the highest gain per copied byte and the greatest age. If it is better to
  /// rewrite the segments that keep many tombstones from being dropped, returns those instead.
  private func bestGain(highestCost: Int, isUrgent: Bool) -> [SegmentID] {
    let first = blocking.first?.id
    let barrier = self.barrier(without: [])
    let secondBarrier = self.barrier(without: Set([first].compactMap { $0 }))
    let newest = segments.reduce(0) { max($0, Self.order($1)) }
    // The highest age that counts: as many writes as the store has entries.
    let oldest = Double(segments.reduce(1) { $0 + max(0, $1.livePutCount) })
    // A segment that was written recently will soon have more to gain, so age counts too, as in
    // log-structured file systems (Rosenblum and Ousterhout, 1992). In measurements with
    // `cairn-bench --compaction`, the square root of the age led to the fewest copies.
    func worth(_ victim: (facts: SegmentFacts, gain: Int, cost: Int)) -> Double {
      let age = isUrgent ? 1 : min(Double(newest - Self.order(victim.facts) + 1), oldest)
      return Double(victim.gain) / Double(victim.cost + 1) * age.squareRoot()
    }
    let victims = segments.compactMap { facts -> (SegmentFacts, gain: Int, cost: Int)? in
      guard facts.isCandidate else { return nil }
      let own = facts.id == first ? secondBarrier : barrier
      let gain = facts.gain(own)
      let cost = facts.cost(own)
      guard gain > 0, Double(cost) <= Double(gain) * Double(highestCost) else { return nil }
      return (facts, gain, cost)
    }.sorted { worth($0) > worth($1) }
    if let blockers = worthwhileBlockers(
      barrier, betterThan: victims.reduce(0) { max($0, Double($1.gain) / Double($1.cost + 1)) })
    {
      return blockers
    }
    var inputs: [SegmentID] = []
    var (cost, read) = (0, 0)
    for victim in victims {
      if !inputs.isEmpty && cost + victim.cost > budget { continue }
      inputs.append(victim.0.id)
      cost += victim.cost
      read += victim.0.byteCount
      if cost >= budget || read >= Self.readFactor * budget { break }
    }
    return inputs
  }

  /// The segments with the lowest barriers, if the tombstones that they hold back are worth the
  /// rewrite.
  ///
  /// A rewritten segment keeps only later tombstones from being dropped. So each such round makes
  /// progress, and these rounds end.
  private func worthwhileBlockers(
    _ barrier: SequenceNumber, betterThan other: Double
  ) -> [SegmentID]? {
    let waiting = segments.filter { $0.isCandidate && !$0.canDropTombstones(barrier) }
    guard let highest = waiting.map(\.highestTombstone).max() else { return nil }
    let blockers = blocking.prefix { $0.barrier <= highest }
    // Segments that cannot be compacted hold tombstones back in any case.
    let reachable = blockers.prefix { $0.isCandidate }
    let end = blockers.count > reachable.count ? blockers[reachable.count].barrier : .max
    let freed = waiting.reduce(0) { $0 + ($1.highestTombstone < end ? $1.tombstoneByteCount : 0) }
    let gain = reachable.reduce(freed) { $0 + $1.gain(0) }
    let cost = reachable.reduce(0) { $0 + max(0, $1.liveByteCount) }
    guard freed > 0, gain * Self.highestCost >= cost, Double(gain) / Double(cost + 1) > other
    else { return nil }
    var inputs: [SegmentID] = []
    var taken = 0
    for blocker in reachable {
      if !inputs.isEmpty && taken + blocker.cost(0) > budget { break }
      inputs.append(blocker.id)
      taken += blocker.cost(0)
      if inputs.count >= Self.readFactor { break }
    }
    return inputs.isEmpty ? nil : inputs
  }

  /// The segments with the highest gain per copied byte, until they gain `goal` bytes. Their copies
  /// take at most `budget` bytes, unless the first one's takes more. At most `highestCost` bytes are
  /// copied for each byte of a gain, which is at least a block.
  package func mostGain(
    highestCost: Int, goal: Int, without excluded: Set<SegmentID>
  ) -> [SegmentFacts] {
    let barrier = barrier(without: [])
    func worth(_ facts: SegmentFacts) -> Double {
      Double(facts.gain(barrier)) / Double(facts.cost(barrier) + 1)
    }
    let victims = segments.filter {
      $0.isCandidate && !excluded.contains($0.id) && $0.gain(barrier) >= 4096
        && $0.cost(barrier) / $0.gain(barrier) <= highestCost
    }.sorted { worth($0) > worth($1) }
    var (gain, cost, count) = (0, 0, 0)
    for victim in victims {
      cost += victim.cost(barrier) + SegmentHeader.byteCount
      if count > 0, gain >= goal || cost > budget { break }
      gain += victim.gain(barrier)
      count += 1
    }
    return Array(victims.prefix(count))
  }

  /// Whether compacting an unsealed segment would reclaim this much and be worth the copying.
  package func hasGainWhereWritten(atLeast byteCount: Int, highestCost: Int) -> Bool {
    let barrier = barrier(without: [])
    return segments.contains {
      !$0.isSealed && $0.gain(barrier) >= byteCount
        && $0.cost(barrier) / $0.gain(barrier) <= highestCost
    }
  }

  /// The segments that keep many tombstones from being dropped, if rewriting them is worth it.
  package func blockersOfTombstones() -> [SegmentID] {
    worthwhileBlockers(barrier(without: []), betterThan: 0) ?? []
  }

  /// Small segments, if many have accumulated. Each process leaves one when it ends.
  ///
  /// Only segments that one copy can hold together: the numbers of its records span less than 2^32.
  /// Otherwise a round might write as many small segments as it reads, and never end.
  private func smallSegments() -> [SegmentID] {
    let small = segments.filter {
      $0.isCandidate && $0.lowestSequence > 0 && $0.byteCount < min(segmentByteCount, 1 << 20) / 4
    }.sorted { $0.lowestSequence < $1.lowestSequence }
    var rest = small[...]
    while rest.count >= Self.smallSegmentCount, let first = rest.first {
      let highest = first.lowestSequence + UInt64(UInt32.max)
      var room = budget
      let together = rest.prefix { $0.lowestSequence <= highest }
        .filter { $0.highestSequence <= highest }.prefix(2 * Self.smallSegmentCount)
        .prefix { facts in
          room -= facts.byteCount
          return room >= 0
        }.map(\.id)
      if together.count >= Self.smallSegmentCount { return Array(together) }
      rest = rest.dropFirst()
    }
    return []
  }

  /// Every segment with a dead byte, in rounds. The lowest barriers come first, so that few
  /// tombstones wait for a segment of a later round: most later segments contain higher numbers,
  /// and earlier ones have been rewritten. There is one exception. While a segment was being
  /// written to, a compaction may have written another. The second can come later, and have a
  /// barrier below some tombstones of the first. Those tombstones are left to `remainingRounds`.
  package func allRounds() -> [[SegmentID]] {
    let victims = segments.filter {
      $0.isCandidate && ($0.deadPutCount > 0 || $0.tombstoneByteCount > 0)
    }
    return rounds(of: victims)
  }

  /// What remains after all rounds: every segment with tombstones that no other segment needs.
  package func remainingRounds() -> [[SegmentID]] {
    rounds(
      of: segments.filter {
        $0.isCandidate && $0.tombstoneByteCount > $0.heldByteCount
          && $0.canDropTombstones(barrier(without: [$0.id]))
      })
  }

  private func rounds(of victims: [SegmentFacts]) -> [[SegmentID]] {
    let victims = victims.sorted { Self.order($0) < Self.order($1) }
    var rounds: [[SegmentID]] = []
    var cost = 0
    for victim in victims {
      let own = max(0, victim.liveByteCount)
      if rounds.isEmpty || cost + own > budget {
        rounds.append([])
        cost = 0
      }
      rounds[rounds.count - 1].append(victim.id)
      cost += own
    }
    return rounds
  }

  private static func order(_ facts: SegmentFacts) -> SequenceNumber {
    max(facts.lowestSequence, facts.compactedAt + 1)
  }
}
