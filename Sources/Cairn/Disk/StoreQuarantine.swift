internal import CairnStore

/// Sets a corrupt store aside, and replaces it with a copy of its sound entries.
///
/// The copy is made under the name that the old store will have. Then the two exchange names
/// atomically. At every moment, the path has a store, and the corrupt store is either still there
/// or next to it. Only an unfinished copy is ever removed: this call's own, or an earlier attempt's
/// if it is marked as unfinished and not in use.
struct StoreQuarantine {
  let path: String
  let environment: Environment
  let clock: any WallClock
  let segmentByteLimit: Int
  let log: DiagnosticLog

  /// - Parameters:
  ///   - damage: the error from opening the store.
  ///   - open: opens the store.
  /// - Returns: the store and the salvage report, or `nil` if another process has replaced the
  ///   store.
  /// - Throws: `locked` if another process is replacing the store or has it open; the errors of a
  ///   salvage; `unsupportedFileSystem`; `damage` if the path is a symbolic link or the store
  ///   contains foreign directories. The store is then unchanged, unless only the sync after the
  ///   exchange failed.
  func recover(
    from damage: StoreError, open: () throws(StoreError) -> Store
  ) throws(StoreError) -> (Store, SalvageReport?) {
    let fileSystem = environment.fileSystem
    let directory = try Directory(path: path, fileSystem: fileSystem, readOnly: false)
    // Only one opener may do this: a second copy would replace the first and all later writes to
    // it.
    guard try directory.lock(),
      try directory.identity()
        == Directory(path: path, fileSystem: fileSystem, readOnly: false).identity()
    else { throw .locked(path: path) }
    // Another process may have done this in the meantime.
    do throws(StoreError) { return (try open(), nil) } catch {
      guard case .corrupt = error else { throw error }
    }
    // Keeps writers from opening the store until the names are exchanged.
    let lockFile = try directory.openFile(FileName.lock, mode: .readOnly)
    try lockFile?.lockStore(at: path, exclusively: false)
    defer { lockFile?.unlock() }
    log(
      .error, .recovery, path: path,
      "\(damage); the store is set aside, and its sound entries are copied to a new one")
    let report = try replace(directory, damage)
    lockFile?.unlock()
    let store = try open()
    // The directory's lock is held until here.
    return withExtendedLifetime(directory) { (store, report) }
  }

  private func replace(
    _ directory: Directory, _ damage: StoreError
  ) throws(StoreError) -> SalvageReport {
    let fileSystem = environment.fileSystem
    let parent = try Directory(
      readingOnly: Directory.parentPath(of: path), fileSystem: fileSystem)
    let name = Directory.lastName(of: path)
    guard try parent.holdsDirectory(name) else {
      log(.error, .recovery, path: path, "left unchanged, because the path is a symbolic link")
      throw damage
    }
    for other in try directory.names() where other != FileName.quarantine {
      if !Self.isFileOfCopy(other), try directory.holdsDirectory(other) {
        log(.error, .recovery, path: path, "left unchanged, because the store contains a directory")
        throw damage
      }
    }
    var copyName = try freshName(of: name, in: parent)
    if let leftName = try unfinishedCopy(of: name, in: parent) { copyName = leftName }
    let copyPath = parent.path + (parent.path.hasSuffix("/") ? "" : "/") + copyName
    let report: SalvageReport
    do throws(StoreError) {
      report = try Store.salvage(
        path: path, to: copyPath, environment: environment, segmentByteLimit: segmentByteLimit,
        clock: clock)
    } catch {
      log(
        .error, .recovery, path: path,
        "nothing was changed, because the store could not be salvaged: \(error)")
      throw error
    }
    let copy = try Directory(path: copyPath, fileSystem: fileSystem, readOnly: false)
    do throws(StoreError) { try distrustMarks(in: copyPath, report) } catch {
      try? empty(copy)
      throw error
    }
    // Keep other processes from writing to the copy before its new name is durable.
    let lockFile = try copy.openFile(FileName.lock, mode: .readOnly)
    try lockFile?.lockStore(at: copyPath, exclusively: true)
    defer { lockFile?.unlock() }
    // DURABILITY: the copy is durable under its name. A crash before the exchange leaves the
    // corrupt store in its place, and an unused copy. A crash after it leaves the copy in its
    // place. Until the sync, a power cut may leave either. So the lock of the copy is held until
    // then, and an open of a cache that may have been replaced like this syncs the parent first
    // (`DiskCache.openStore`).
    do throws(StoreError) {
      guard try parent.exchange(name, with: copyName) else {
        throw .unsupportedFileSystem(
          path: parent.path, name: "a filesystem that cannot exchange names")
      }
    } catch {
      // Failed attempts must not fill the disk. But if the exchange happened anyway, keep the copy.
      let found = try? Directory(path: path, fileSystem: fileSystem, readOnly: false).identity()
      if try found == directory.identity() { try? empty(copy) }
      throw error
    }
    log(
      .warning, .recovery, path: path,
      "\(report.entryCount) entries were salvaged, known keys lost: "
        + "\(report.lostKeyCount), bytes: \(report.lostByteCount); the old store is at \(copyPath)")
    try parent.synchronize()
    return report
  }

  /// Marks all tags as removed in a copy, if the salvage may have lost marks of removed tags. Done
  /// before the names are exchanged, because a later open does not know of the loss.
  private func distrustMarks(in copyPath: String, _ report: SalvageReport) throws(StoreError) {
    if report.keepsMarks { return }
    log(
      .warning, .recovery, path: path,
      "a removal by tag may be lost, so all entries with tags are removed")
    var configuration = StoreConfiguration()
    configuration.clock = clock
    configuration.segmentByteLimit = segmentByteLimit
    configuration.durability = .durable
    configuration.maintenanceInterval = nil
    configuration.log = log
    let store = try Store(
      path: copyPath, configuration: configuration, environment: environment, readOnly: false)
    try store.distrustMarks()
    try store.close()
  }

  /// The directory that an earlier attempt left, emptied.
  private func unfinishedCopy(
    of name: String, in parent: Directory
  ) throws(StoreError) -> String? {
    for other in try parent.names() where Self.isCopyName(other, of: name) {
      // Leave a directory alone if it cannot be inspected, contains other files or is in use.
      do throws(StoreError) {
        let directory = try Directory(
          path: "\(parent.path)/\(other)", fileSystem: environment.fileSystem, readOnly: false)
        let names = try directory.names()
        guard names.isEmpty || names.contains(FileName.unfinishedCopy),
          names.allSatisfy(Self.isFileOfCopy)
        else { continue }
        // A process that writes a copy holds its lock.
        let lockFile = try directory.openFile(FileName.lock, mode: .readOnly)
        if let lockFile, try !lockFile.lock(exclusively: true) { continue }
        defer { lockFile?.unlock() }
        try empty(directory)
        return other
      } catch { continue }
    }
    return nil
  }

  /// Whether this type gives the name `other` to directories next to a store. False for directories
  /// of a cache with a similar name.
  private static func isCopyName(_ other: String, of name: String) -> Bool {
    guard other.hasPrefix(name + infix) else { return false }
    let stamp = other.dropFirst(name.count + infix.count)
    return !stamp.isEmpty && stamp.allSatisfy { $0.isASCII && $0.isNumber }
  }

  /// Whether a copy of a store may have a file with this name.
  private static func isFileOfCopy(_ name: String) -> Bool {
    [
      FileName.lock, FileName.manifest, FileName.newManifest, FileName.nextManifest,
      FileName.newNextManifest, FileName.emptiedManifest, FileName.reserve, FileName.spare,
      FileName.unfinishedCopy,
    ].contains(name) || FileName.isSegment(name) || FileName.isCheckpoint(name)
  }

  /// Removes the files of a copy, its marker last.
  private func empty(_ directory: Directory) throws(StoreError) {
    let last = [FileName.lock, FileName.unfinishedCopy]
    let names = try directory.names()
    for name in names where !last.contains(name) { try directory.unlink(name) }
    for name in last where names.contains(name) { try directory.unlink(name) }
  }

  private static let infix = ".quarantine-"

  private func freshName(of name: String, in parent: Directory) throws(StoreError) -> String {
    let names = Set(try parent.names())
    var stamp = clock.now().millisecondsSinceEpoch
    while names.contains("\(name)\(Self.infix)\(stamp)") { stamp &+= 1 }
    return "\(name)\(Self.infix)\(stamp)"
  }
}

extension SalvageReport {
  /// Whether the copy certainly has all marks of removed tags, and they hide the same entries.
  fileprivate var keepsMarks: Bool { isComplete && warnings.isEmpty }
}
