/// A limit on the disk space of one directory's files.
///
/// A check adds up the blocks of all files. Later allocations and writes are added to the sum, and
/// most of a removed file's blocks are subtracted, so the sum is never too low. The next check is due
/// only when the sum comes near the limit: with thousands of files, it takes long.
///
/// If files already exceed a lowered limit, they may grow a little more, because otherwise nothing
/// could be removed from them. Each check that finds fewer bytes lowers this allowance.
package final class DiskQuota: Sendable {
  private struct State {
    /// The sum, or `nil` if not checked yet.
    var usedByteCount: Int?
    /// Bytes that were taken but perhaps not allocated yet. A check may miss them.
    var pendingByteCount = 0
    /// How many checks have begun.
    var checkCount = 0
    /// The current limit.
    var limit = Int.max
    /// The total size of the blocks of all files, or `nil` once the directory is gone.
    var look: (@Sendable () throws(StoreError) -> Int?)?
  }

  /// Kept for manifests, because without new manifests nothing can be reclaimed.
  private static let manifestByteCount = 64 << 10
  /// What a file may have beside what was taken for it: each allocation is rounded up to a block,
  /// and the list of a file's blocks may take one.
  private static let roundedByteCount = 64 << 10
  private let byteLimit: Int
  private let state = Lock(State())

  package init(byteLimit: Int) { self.byteLimit = byteLimit - Self.manifestByteCount }

  package func begin(lookingBy look: @escaping @Sendable () throws(StoreError) -> Int?) {
    state.withLock { $0.look = look }
  }

  /// Takes this many bytes; `false` if that would exceed the limit.
  ///
  /// - Throws: `system` if the files cannot be checked, for example if no descriptor is left.
  package func take(_ byteCount: Int) throws(StoreError) -> Bool {
    try state.withLock { (state) throws(StoreError) in
      guard try hasRoom(for: byteCount, &state) else { return false }
      state.usedByteCount = state.usedByteCount.map { $0 + byteCount }
      state.pendingByteCount += byteCount
      return true
    }
  }

  /// Whether there is room for this many bytes.
  ///
  /// - Throws: see `take`.
  package func hasRoom(for byteCount: Int) throws(StoreError) -> Bool {
    try state.withLock { (state) throws(StoreError) in try hasRoom(for: byteCount, &state) }
  }

  private func hasRoom(for byteCount: Int, _ state: inout State) throws(StoreError) -> Bool {
    if state.usedByteCount ?? .max > state.limit - byteCount { try look(&state) }
    return state.usedByteCount ?? .max <= state.limit - byteCount
  }

  /// How many bytes are left, or fewer. Checks nothing.
  var leastFreeByteCount: Int {
    state.withLock { state in max(0, state.usedByteCount.map { state.limit - $0 } ?? byteLimit) }
  }

  /// Removes a file by calling `body`, and subtracts most of its blocks. The rest are those that
  /// may not be in the sum, because allocations are rounded up.
  func removing(_ byteCount: () -> Int, _ body: () throws(StoreError) -> Void) throws(StoreError) {
    let checkCount = state.withLock { $0.checkCount }
    let allocated = byteCount()
    let removed = max(0, allocated - max(allocated / 32, Self.roundedByteCount))
    try body()
    state.withLock { state in
      // A check in the meantime may not have found the file.
      if state.checkCount == checkCount {
        state.usedByteCount = state.usedByteCount.map { $0 - removed }
      }
    }
  }

  /// Call after the allocation for which the bytes were taken, even if it failed.
  package func settle(_ byteCount: Int) { state.withLock { $0.pendingByteCount -= byteCount } }

  /// Adds bytes that were written, or allocated for a manifest. Never refused: a large write first
  /// checks how much is free.
  func add(_ byteCount: Int) {
    state.withLock { state in state.usedByteCount = state.usedByteCount.map { $0 + byteCount } }
  }

  /// The number of bytes left.
  ///
  /// - Complexity: O(files), a few system calls for each.
  package var freeByteCount: Int {
    get throws(StoreError) {
      try state.withLock { (state) throws(StoreError) in
        try look(&state)
        return state.limit - (state.usedByteCount ?? state.limit)
      }
    }
  }

  private func look(_ state: inout State) throws(StoreError) {
    state.checkCount += 1
    guard let used = try state.look?() else { return }
    state.usedByteCount = used + state.pendingByteCount
    state.limit = used > byteLimit ? min(state.limit, used + byteLimit / 8) : byteLimit
  }
}
