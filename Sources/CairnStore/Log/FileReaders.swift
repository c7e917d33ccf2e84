internal import Synchronization

/// Tracks readers of a truncated segment. The file becomes shorter once no reader uses the cut
/// bytes. Memory beyond the end of a file must not be touched.
final class FileReaders: Sendable {
  private struct State {
    var ends: [Int] = []
    /// Whether the segment has left the log.
    var isRetired = false
    /// The furthest end that departed readers or another session used, or 0 once the file is
    /// shortened.
    var leftEnd = 0
    /// The bytes counted as pinned for the file.
    var pinnedByteCount = 0

    mutating func count(in total: UsageTotal) {
      var pinned = 0
      if let shortest = ends.min(), let longest = ends.max() {
        pinned = isRetired ? longest : max(longest, leftEnd) - shortest
      }
      total.pinnedBytes.wrappingAdd(pinned - pinnedByteCount, ordering: .relaxed)
      pinnedByteCount = pinned
    }

    /// Cuts off unread bytes, unless another session reads them.
    mutating func shorten(_ file: SegmentFile) {
      // If the store was closed, no reader remains, and the next open shortens the file.
      guard !isRetired, let longest = ends.max(), longest < leftEnd else { return }
      if file.shorten(to: longest) { leftEnd = 0 }
    }
  }

  private let state = Lock(State())
  private let processMark = ProcessMark()

  func add(_ end: Int, _ total: UsageTotal) {
    state.withLock { state in
      state.ends.append(end)
      state.count(in: total)
    }
  }

  func retire(_ total: UsageTotal) {
    state.withLock { state in
      state.isRetired = true
      state.count(in: total)
    }
  }

  func remove(_ end: Int, of file: SegmentFile, _ total: UsageTotal) {
    state.withLock { state in
      if let index = state.ends.firstIndex(of: end) { state.ends.remove(at: index) }
      state.leftEnd = max(state.leftEnd, end)
      shorten(file, &state)
      state.count(in: total)
    }
  }

  func leave(_ end: Int, _ total: UsageTotal) {
    state.withLock { state in
      state.leftEnd = end
      state.count(in: total)
    }
  }

  func retry(_ file: SegmentFile, _ total: UsageTotal) {
    state.withLock { state in
      if state.leftEnd == 0 { return }
      shorten(file, &state)
      state.count(in: total)
    }
  }

  private func shorten(_ file: SegmentFile, _ state: inout State) {
    // A forked child shares its lock on the file with its parent, but does not know the parent's
    // readers.
    if processMark.isForeign { return }
    state.shorten(file)
  }
}
