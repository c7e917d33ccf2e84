/// What the files of one directory may take on disk.
///
/// A look adds up the blocks of all files. What is allocated or written after it is added, and what is given back is not:
/// the sum is never too low. So the next look is due only where the limit seems to be reached.
///
/// Files that take more already, under a limit that was higher, may take a little more still, or nothing could be
/// removed from them. With each look that shows less, that is the limit.
package final class DiskQuota: Sendable {
  private struct State {
    /// The sum; `nil`: nobody has looked yet.
    var usedByteCount: Int?
    /// Taken, and perhaps not allocated yet: a look may not show it.
    var pendingByteCount = 0
    /// What they may take now.
    var limit = Int.max
    /// Adds up the blocks of all files; `nil` where that cannot be done.
    var look: (@Sendable () -> Int?)?
  }

  /// Kept for manifests, without which nothing can be given back.
  private static let manifestByteCount = 64 << 10
  private let byteLimit: Int
  private let state = Lock(State())

  package init(byteLimit: Int) { self.byteLimit = byteLimit - Self.manifestByteCount }

  package func begin(lookingBy look: @escaping @Sendable () -> Int?) {
    state.withLock { $0.look = look }
  }

  /// Takes so many bytes; `false` where that would be more than the limit.
  package func take(_ byteCount: Int) -> Bool {
    state.withLock { state in
      if state.usedByteCount == nil || state.usedByteCount ?? 0 > state.limit - byteCount {
        look(&state)
      }
      guard let used = state.usedByteCount, used <= state.limit - byteCount else { return false }
      state.usedByteCount = used + byteCount
      state.pendingByteCount += byteCount
      return true
    }
  }

  /// To be called when the allocation that so many bytes were taken for has ended.
  package func settle(_ byteCount: Int) { state.withLock { $0.pendingByteCount -= byteCount } }

  /// Adds what is written or what a manifest takes, which is never refused: whoever writes much asks before how much is free.
  func add(_ byteCount: Int) {
    state.withLock { state in state.usedByteCount = state.usedByteCount.map { $0 + byteCount } }
  }

  /// How many bytes are left.
  ///
  /// - Complexity: O(files), a few system calls for each.
  package var freeByteCount: Int {
    state.withLock { state in
      look(&state)
      return state.limit - (state.usedByteCount ?? state.limit)
    }
  }

  private func look(_ state: inout State) {
    guard let used = state.look?() else { return }
    state.usedByteCount = used + state.pendingByteCount
    state.limit = max(byteLimit, min(state.limit, used + byteLimit / 8))
  }
}
