internal import Synchronization

/// Space on the disk that nothing is stored in, kept for what gives space back: the tombstones of
/// removals, and the segments that a compaction writes. ZFS keeps "slop space" for the same end.
///
/// It is a file beside the log. Writers that add something make sure first that it is there, so that
/// they are refused while there is still room to remove something, also by the next process after a
/// kill, and also where others filled the disk.
final class DiskReserve: Sendable {
  /// The size where little is stored.
  static let lowestByteCount = 128 << 10

  private struct State {
    /// How much there is, once that was looked up.
    var byteCount: Int?
    /// Whether a compaction uses it.
    var isLent = false
  }

  private let directory: Directory
  private let isUsed: Bool
  private let state = Lock(State())
  private let short = Atomic(false)

  /// - Parameter isUsed: where blocks that are allocated are not really reserved, there is no reserve.
  init(directory: Directory, isUsed: Bool) {
    self.directory = directory
    self.isUsed = isUsed
  }

  /// Whether a part of it was given up or lent, and has not been taken back.
  var isShort: Bool { short.load(ordering: .relaxed) }

  /// Whether a compaction uses it now.
  var isLent: Bool { state.withLock { $0.isLent } }

  /// How much is to be there beside a log of some size: 1 MiB for one of 24 MiB, 8 MiB for one of 1 GiB.
  ///
  /// With one half for tombstones and one for pieces of a compaction, what the tombstones kill has to be
  /// more than what the pieces lose, which are the more the smaller they are: so its square goes with the
  /// size of the log. Powers of two, so that it seldom changes. See Docs/Decisions.
  static func byteCount(forLogOf byteCount: Int) -> Int {
    var wanted = lowestByteCount
    while wanted / (16 << 10) * wanted < byteCount { wanted *= 2 }
    return wanted
  }

  /// Makes sure that it is there for a log that is about to grow.
  ///
  /// - Parameter added: by how much.
  /// - Throws: `noSpace` where it is not, and there is no room for it or a compaction uses it.
  func ensure(forLogOf logByteCount: Int, adding added: Int = 0) throws(StoreError) {
    if !isUsed { return }
    let wanted = Self.byteCount(forLogOf: logByteCount + added)
    try state.withLock { (state) throws(StoreError) in
      if state.isLent {
        throw .noSpace(path: path, neededByteCount: wanted, limit: .disk)
      }
      do throws(StoreError) { try resize(&state, to: wanted) } catch {
        // What the log needs as it is. Whoever fills the disk now must not find it at one half, as a compaction leaves
        // it.
        grow(&state, to: Self.byteCount(forLogOf: logByteCount))
        throw error
      }
      short.store(false, ordering: .relaxed)
    }
  }

  /// Gives back what it was made larger by for a write that failed.
  func shrink(forLogOf logByteCount: Int) {
    if !isUsed { return }
    let wanted = Self.byteCount(forLogOf: logByteCount)
    state.withLock { state in
      guard !state.isLent, let file = try? look(&state), let byteCount = state.byteCount,
        byteCount > wanted, (try? file.truncate(to: wanted)) != nil
      else { return }
      state.byteCount = wanted
    }
  }

  /// Takes as much of it as there is room for.
  ///
  /// - Parameter isForRemoval: whether a removal waits, which is left one half.
  func takeBack(forLogOf logByteCount: Int, isForRemoval: Bool) {
    if !isUsed { return }
    state.withLock { state in
      state.isLent = false
      grow(&state, to: Self.byteCount(forLogOf: logByteCount) / (isForRemoval ? 2 : 1))
    }
  }

  /// Makes it as large as there is room for, by halves of what is wanted.
  private func grow(_ state: inout State, to wanted: Int) {
    var wanted = wanted
    while wanted >= 4096, (try? resize(&state, to: wanted)) == nil { wanted /= 2 }
  }

  /// Gives one half up for removals; `false` where it is gone already.
  ///
  /// A log that has just grown beyond a step has the reserve of the step before. A file of that size may also be what an
  /// earlier process left of a larger one, so a quarter of what the log should have is kept in any case.
  func giveHalf(forLogOf logByteCount: Int) -> Bool {
    if !isUsed { return false }
    let wanted = Self.byteCount(forLogOf: logByteCount)
    return state.withLock { state in
      guard !state.isLent, let file = try? look(&state), let byteCount = state.byteCount else {
        return false
      }
      let kept = max(byteCount / 2, wanted / (isShort ? 2 : 4))
      guard byteCount > kept, (try? file.truncate(to: kept)) != nil else { return false }
      state.byteCount = kept
      short.store(true, ordering: .relaxed)
      return true
    }
  }

  /// Gives all of it up for a compaction, until `takeBack`.
  func lend() {
    if !isUsed { return }
    state.withLock { state in
      state.isLent = true
      short.store(true, ordering: .relaxed)
      guard let file = try? look(&state), (try? file.truncate(to: 0)) != nil else { return }
      state.byteCount = 0
    }
  }

  private var path: String { "\(directory.path)/\(FileName.reserve)" }

  /// The file, where there is one, and its size.
  private func look(_ state: inout State) throws(StoreError) -> File? {
    guard let file = try directory.openFile(FileName.reserve, mode: .readWrite) else {
      state.byteCount = 0
      return nil
    }
    if state.byteCount == nil {
      let status = try file.status()
      // A copy of the file may have holes.
      if status.allocatedByteCount < status.byteCount { try file.truncate(to: 0) }
      state.byteCount = status.allocatedByteCount < status.byteCount ? 0 : status.byteCount
    }
    return file
  }

  private func resize(_ state: inout State, to wanted: Int) throws(StoreError) {
    if let byteCount = state.byteCount, byteCount >= wanted, byteCount <= 8 * wanted { return }
    let file: File
    if let found = try look(&state) {
      file = found
    } else {
      file = try directory.createFile(FileName.reserve)
    }
    let byteCount = state.byteCount ?? 0
    if byteCount > 8 * wanted {
      try file.truncate(to: wanted)
    } else if byteCount < wanted {
      do throws(StoreError) {
        try file.allocate(from: byteCount, to: wanted, orExtend: false)
      } catch {
        guard case .noSpace(_, _, let limit) = error else { throw error }
        // What a failed allocation got is given back.
        try? file.truncate(to: byteCount)
        // A limit on the size of files says nothing of the disk: it is kept as large as may be.
        if case .fileSize = limit { return }
        throw error
      }
    } else {
      return
    }
    state.byteCount = wanted
  }
}
