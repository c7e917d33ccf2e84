/// An index entry that may be removed, as it was when it was read.
package struct RemovalCandidate: Sendable {
  package let entry: IndexEntry
  /// Entries with lower ranks are removed earlier. Among equal ranks, the least recently used goes
  /// first.
  package let rank: UInt64
  /// The entry's version, or 0 if the record was not read.
  package let sequence: SequenceNumber
  package let shard: UInt8

  package init(_ entry: IndexEntry, inShard shard: Int, rank: UInt64, sequence: SequenceNumber = 0)
  {
    self.entry = entry
    self.rank = rank
    self.sequence = sequence
    self.shard = UInt8(shard)
  }

  /// The part of the key's hash that the index knows; see `HashIndex.known`.
  package var hash: UInt64 { entry.hash(inShard: Int(shard)) }

  @inline(__always)
  package func goesBefore(_ other: RemovalCandidate) -> Bool {
    rank == other.rank ? entry.tick < other.entry.tick : rank < other.rank
  }
}

/// Picks the first candidates out of many, without keeping or sorting all of them.
///
/// - Complexity: O(1) per candidate on average. Keeps at most 4096 candidates, or twice the limit
///   if that is more.
package struct CandidateSelection {
  private let limit: Int
  private var candidates: [RemovalCandidate] = []
  /// The last candidate picked so far, once enough are picked. New candidates are ignored unless
  /// they go before this one.
  private var bound: RemovalCandidate?

  /// - Parameter limit: the maximum number to pick.
  package init(limit: Int) {
    precondition(limit > 0)
    self.limit = limit
  }

  @inline(__always)
  package mutating func add(_ candidate: RemovalCandidate) {
    if let bound, !candidate.goesBefore(bound) { return }
    candidates.append(candidate)
    if candidates.count >= max(4096, limit * 2) { cut() }
  }

  /// The picked candidates, in the order of removal.
  package consuming func sorted() -> [RemovalCandidate] {
    cut()
    candidates.sort { $0.goesBefore($1) }
    return candidates
  }

  /// Drops all candidates that are not among the first `limit`.
  private mutating func cut() {
    guard candidates.count > limit else { return }
    // Quickselect: afterwards the first `limit` precede the others.
    var low = 0
    var high = candidates.count - 1
    while low < high {
      let pivot = candidates[median(low, low + (high - low) / 2, high)]
      var left = low
      var right = high
      while left <= right {
        while candidates[left].goesBefore(pivot) { left += 1 }
        while pivot.goesBefore(candidates[right]) { right -= 1 }
        if left <= right {
          candidates.swapAt(left, right)
          left += 1
          right -= 1
        }
      }
      if limit - 1 <= right {
        high = right
      } else if limit - 1 >= left {
        low = left
      } else {
        break
      }
    }
    bound = candidates[limit - 1]
    candidates.removeSubrange(limit...)
  }

  /// The index of the median of three elements.
  private func median(_ a: Int, _ b: Int, _ c: Int) -> Int {
    if candidates[a].goesBefore(candidates[b]) {
      if candidates[b].goesBefore(candidates[c]) { return b }
      return candidates[a].goesBefore(candidates[c]) ? c : a
    }
    if candidates[a].goesBefore(candidates[c]) { return a }
    return candidates[b].goesBefore(candidates[c]) ? c : b
  }
}
