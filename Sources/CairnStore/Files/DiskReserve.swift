internal import Synchronization

/// Unused disk space, kept for operations that reclaim space: for the tombstones of removals and
/// the segments that a compaction writes. ZFS keeps "slop space" for the same purpose.
///
/// The reserve is a file beside the log, and an empty one. Writers that add data first ensure that
/// both exist, so they fail while there is still room for removals. The files outlive a killed
/// process, and other programs cannot take their space.
///
/// A filesystem may have space but no inode left. The files then become segments: one of them the
/// next segment of the log, which takes the tombstones, and one the output of a compaction, which
/// removes others.
final class DiskReserve: Sendable {
  /// The size for a small store.
  static let lowestByteCount = 32 << 10

  private struct State {
    /// The file's size, once known.
    var byteCount: Int?
    /// Whether a compaction is using the reserve.
    var isLent = false
    /// Whether the empty file is known to exist.
    var hasSpare = false
  }

  private let directory: Directory
  private let isUsed: Bool
  private let state = Lock(State())
  private let short = Atomic(false)

  /// - Parameter isUsed: `false` if the filesystem cannot reserve blocks; there is then no reserve.
  init(directory: Directory, isUsed: Bool) {
    self.directory = directory
    self.isUsed = isUsed
  }

  /// Whether part of the reserve has been released or lent, and has not been taken back.
  var isShort: Bool { short.load(ordering: .relaxed) }

  /// Whether a compaction is using the reserve.
  var isLent: Bool { state.withLock { $0.isLent } }

  /// The target size for a log of some size: 1 MiB for 24 MiB, 4 MiB for 1 GiB.
  ///
  /// One half is for tombstones and one for the pieces of a compaction. The tombstones must make
  /// more bytes dead than the pieces waste, and smaller pieces waste more. So the square of the
  /// reserve is proportional to the size of the log. Sizes are powers of two and therefore seldom
  /// change. See Docs/Decisions.
  static func byteCount(forLogOf byteCount: Int) -> Int {
    var wanted = lowestByteCount
    while wanted / (16 << 10) * wanted < byteCount { wanted *= 2 }
    return wanted
  }

  /// Ensures that the reserve exists before the log grows.
  ///
  /// - Parameter added: by how much the log will grow.
  /// - Throws: `noSpace` if there is no room for the reserve, or if a compaction is using it.
  func ensure(forLogOf logByteCount: Int, adding added: Int = 0) throws(StoreError) {
    if !isUsed { return }
    let wanted = Self.byteCount(forLogOf: logByteCount + added)
    try state.withLock { (state) throws(StoreError) in
      if state.isLent {
        throw .noSpace(path: path, neededByteCount: wanted, limit: .disk)
      }
      do throws(StoreError) {
        try resize(&state, to: wanted)
        if !state.hasSpare { _ = try directory.openFile(FileName.spare, mode: .createIfMissing) }
        state.hasSpare = true
      } catch {
        // Grow at least to the size for the current log. If another process fills the disk now, the
        // half that a compaction leaves is not enough.
        grow(&state, to: Self.byteCount(forLogOf: logByteCount))
        throw error
      }
      short.store(false, ordering: .relaxed)
    }
  }

  /// Creates the files of the reserve without space, if they are missing and the filesystem can add
  /// them. Call before the log's first file is created.
  func makeFiles() {
    for name in [FileName.spare, FileName.reserve] where isUsed {
      _ = try? directory.openFile(name, mode: .createIfMissing)
    }
  }

  /// Creates a file for the log. If the filesystem can add none, a file of the reserve becomes it.
  func createFile(_ name: String) throws(StoreError) -> File {
    do throws(StoreError) { return try directory.createFile(name) } catch {
      guard isUsed, case .noSpace = error, let file = giveFile(name) else { throw error }
      return file
    }
  }

  private func giveFile(_ name: String) -> File? {
    state.withLock { state in
      for spare in [FileName.spare, FileName.reserve] {
        // DURABILITY: the file is empty before it gets the name. If a crash undoes the change of
        // names, the log's file is missing, as if it had not been created.
        guard let file = try? directory.openFile(spare, mode: .readWrite),
          (try? file.truncate(to: 0)) != nil, (try? directory.rename(spare, to: name)) != nil
        else { continue }
        if spare == FileName.spare { state.hasSpare = false } else { state.byteCount = 0 }
        short.store(true, ordering: .relaxed)
        return try? directory.openFile(name, mode: .readWrite)
      }
      return nil
    }
  }

  /// Frees the part by which the reserve has grown for a write that failed.
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

  /// Takes back as much of the reserve as the disk has room for.
  ///
  /// - Parameter isForRemoval: whether a removal is waiting; one half is then left for it.
  func takeBack(forLogOf logByteCount: Int, isForRemoval: Bool) {
    if !isUsed { return }
    state.withLock { state in
      state.isLent = false
      grow(&state, to: Self.byteCount(forLogOf: logByteCount) / (isForRemoval ? 2 : 1))
    }
  }

  /// Grows the reserve as far as there is room, halving the wanted size until it fits.
  private func grow(_ state: inout State, to wanted: Int) {
    var wanted = wanted
    while wanted >= 4096, (try? resize(&state, to: wanted)) == nil { wanted /= 2 }
  }

  /// Releases one half for removals. Returns `false` if there is nothing to release.
  ///
  /// If a log has just outgrown a step, its reserve still has the size of that step. But a file of
  /// that size may also be the rest of a larger reserve that an earlier process released in part.
  /// So at least a quarter of the log's target always stays.
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

  /// Releases the whole reserve for a compaction, until `takeBack`.
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

  /// Opens the file, if there is one, and records its size.
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
        // Frees the blocks of a failed allocation.
        try? file.truncate(to: byteCount)
        // A limit on file size says nothing about the disk: keep as much as allowed.
        if case .fileSize = limit { return }
        throw error
      }
    } else {
      return
    }
    state.byteCount = wanted
  }
}
