/// The granules of the location space that segments occupy.
package final class GranuleSpace: Sendable {
  private struct State: ~Copyable {
    /// Granules from here on have never been used. Starts at 1, so that no location is 0.
    var next = 1
    /// Freed runs in ascending order. No two are adjacent.
    var free: [Range<Int>] = []

    /// Takes the shortest freed run that is long enough, or its beginning, and returns its start.
    ///
    /// - Complexity: O(runs). Taken once for each new segment.
    mutating func takeFree(_ length: Int) -> Int? {
      let fitting = free.indices.filter { free[$0].count >= length }
      guard let place = fitting.min(by: { free[$0].count < free[$1].count }) else { return nil }
      let run = free[place]
      let rest = (run.lowerBound + length)..<run.upperBound
      free.replaceSubrange(place...place, with: rest.isEmpty ? [] : [rest])
      return run.lowerBound
    }

    /// Adds a freed run, and joins it with its neighbours.
    mutating func add(_ run: Range<Int>) {
      let end = free.firstIndex { $0.lowerBound > run.upperBound } ?? free.count
      let start = free[..<end].lastIndex { $0.upperBound < run.lowerBound }.map { $0 + 1 } ?? 0
      let joined = free[start..<end].reduce(run) {
        min($0.lowerBound, $1.lowerBound)..<max($0.upperBound, $1.upperBound)
      }
      free.replaceSubrange(start..<end, with: [joined])
    }
  }

  /// Replaces the name of a system call in the error for a full location space.
  static let callName = "segment table"

  private let state = Lock(State())

  package init() {}

  /// Takes a run of granules, and returns its start.
  package func reserve(_ length: Int) throws(StoreError) -> Int {
    let granule = state.withLock { state -> Int? in
      if let start = state.takeFree(length) { return start }
      guard state.next + length <= Location.granuleCount else { return nil }
      defer { state.next += length }
      return state.next
    }
    guard let granule else {
      throw .system(
        SystemError(call: Self.callName, errorNumber: SystemError.noMemory).failure(
          path: "8 TiB of segments"))
    }
    return granule
  }

  package func release(_ run: Range<Int>) {
    state.withLock { $0.add(run) }
  }

  func beginPlacing(below end: Int) { state.withLock { $0.next = max($0.next, end) } }

  func endPlacing(_ runs: [Range<Int>], below end: Int) {
    state.withLock { state in
      var next = 1
      for run in runs.sorted(by: { $0.lowerBound < $1.lowerBound }) + [end..<end] {
        if run.lowerBound > next { state.add(next..<run.lowerBound) }
        next = max(next, run.upperBound)
      }
    }
  }
}
