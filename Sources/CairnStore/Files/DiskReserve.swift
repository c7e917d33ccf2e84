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

  /// Whether part of the reserve has been released or lent, and has not been taken back, or the log
  /// has grown without it.
  var isShort: Bool { short.load(ordering: .relaxed) }

  /// Makes the next write that adds data ensure the reserve.
  func markShort() { if isUsed { short.store(true, ordering: .relaxed) } }

  /// Whether a compaction is using the reserve.
  var isLent: Bool { state.withLock { $0.isLent } }

  /// What the reserve is kept for.
  struct Size {
    /// The most that a compaction of one segment writes.
    var copyByteCount: Int
    /// Tombstones.
    var removalByteCount: Int

    var byteCount: Int { copyByteCount + removalByteCount }

    /// - Parameter logByteCount: the size of the log. The tombstones must make more bytes dead than
    ///   compaction wastes, so the square of their share is proportional to it: 1 MiB for 256 MiB.
    init(copyByteCount: Int, forLogOf logByteCount: Int) {
      self.copyByteCount = copyByteCount
      removalByteCount = 16 << 10
      while removalByteCount / (4 << 10) * removalByteCount < logByteCount { removalByteCount *= 2 }
    }
  }

  /// Ensures that the reserve exists before the log grows.
  ///
  /// - Parameters:
  ///   - wanted: the size that the log will need.
  ///   - needed: the size that it needs now.
  /// - Throws: `noSpace` if there is no room for the reserve, or if a compaction is using it.
  func ensure(_ wanted: Size, atLeast needed: Size) throws(StoreError) {
    if !isUsed { return }
    try state.withLock { (state) throws(StoreError) in
      if state.isLent {
        throw .noSpace(path: path, neededByteCount: wanted.byteCount, limit: .disk)
      }
      do throws(StoreError) {
        try resize(&state, to: wanted.byteCount)
        if !state.hasSpare { _ = try directory.openFile(FileName.spare, mode: .createIfMissing) }
        state.hasSpare = true
      } catch {
        // If another process fills the disk now, what a compaction leaves is not enough.
        grow(&state, to: needed.byteCount)
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
  func shrink(to needed: Size) {
    if !isUsed { return }
    state.withLock { state in
      if !state.isLent { truncate(&state, to: needed.byteCount) }
    }
  }

  /// Takes back as much of the reserve as the disk has room for.
  ///
  /// - Parameter isForRemoval: whether a removal is waiting; the part for tombstones is then left to
  ///   it.
  func takeBack(_ size: Size, isForRemoval: Bool) {
    if !isUsed { return }
    state.withLock { state in
      state.isLent = false
      grow(&state, to: isForRemoval ? size.copyByteCount : size.byteCount)
    }
  }

  /// Grows the reserve as far as there is room.
  private func grow(_ state: inout State, to wanted: Int) {
    if (try? resize(&state, to: wanted)) != nil { return }
    let free = (try? directory.freeByteCount()) ?? 0
    // Another thread or program may take some of it at the same time.
    for share in [free, free / 2] {
      let fitting = ((state.byteCount ?? 0) + min(share, wanted)) & ~4095
      if fitting < wanted, (try? resize(&state, to: fitting)) != nil { return }
    }
  }

  /// Releases the part for tombstones. Returns `false` if there is nothing to release.
  func giveToRemovals(_ size: Size) -> Bool {
    if !isUsed { return false }
    return state.withLock { state in
      !state.isLent && truncate(&state, to: size.copyByteCount)
    }
  }

  /// Releases the whole reserve for a compaction, until `takeBack`.
  func lend() {
    if !isUsed { return }
    state.withLock { state in
      state.isLent = true
      short.store(true, ordering: .relaxed)
      truncate(&state, to: 0)
    }
  }

  /// Releases what is above a size. Returns `false` if there is nothing to release.
  @discardableResult
  private func truncate(_ state: inout State, to kept: Int) -> Bool {
    guard let file = try? look(&state), let byteCount = state.byteCount, byteCount > kept,
      (try? file.truncate(to: kept)) != nil
    else { return false }
    state.byteCount = kept
    short.store(true, ordering: .relaxed)
    return true
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
