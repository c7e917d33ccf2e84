/// The granules of the location space that segments occupy.
final class GranuleSpace: Sendable {
  private struct State: ~Copyable {
    /// Granules from here on have never been used. Starts at 1, so that no location is 0.
    var next = 1
    /// Starts of freed runs, by their length.
    var free: [Int: [Int]] = [:]

    /// Takes a freed run, or a part of a longer one, and returns its start.
    mutating func takeFree(_ length: Int) -> Int? {
      if let start = free[length]?.popLast() { return start }
      let longer = free.filter { $0.key > length && !$0.value.isEmpty }.keys.min()
      guard let longer, let start = free[longer]?.popLast() else { return nil }
      free[longer - length, default: []].append(start + length)
      return start
    }
  }

  /// Replaces the name of a system call in the error for a full location space.
  static let callName = "segment table"

  private let state = Lock(State())

  /// Takes a run of granules, and returns its start.
  func reserve(_ length: Int) throws(StoreError) -> Int {
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

  func release(_ run: Range<Int>) {
    state.withLock { $0.free[run.count, default: []].append(run.lowerBound) }
  }

  func beginPlacing(below end: Int) { state.withLock { $0.next = max($0.next, end) } }

  func endPlacing(_ runs: [Range<Int>], below end: Int) {
    state.withLock { state in
      var next = 1
      for run in runs.sorted(by: { $0.lowerBound < $1.lowerBound }) + [end..<end] {
        if run.lowerBound > next { state.free[run.lowerBound - next, default: []].append(next) }
        next = max(next, run.upperBound)
      }
    }
  }
}
