internal import CairnStore

/// Sets a store aside that cannot be opened since it is corrupt, and puts what is sound of it in its place.
///
/// The copy is made under the name that the old one will have, and then the two exchange their names, at
/// once: at every moment there is a store under the path, and the corrupt one is somewhere beside it or
/// still there. Nothing is ever removed but a copy that is this one's, or one of an earlier attempt that was
/// not finished, says so itself, and is nobody's now.
struct StoreQuarantine {
  let path: String
  let environment: Environment
  let clock: any WallClock
  let segmentByteLimit: Int
  let log: DiagnosticLog

  /// - Parameters:
  ///   - damage: why the store could not be opened.
  ///   - open: opens it.
  /// - Returns: the store, and what was salvaged; `nil` where somebody else had done so meanwhile.
  /// - Throws: `locked` where somebody else is about it, or has the store open; what a salvage throws;
  ///   `unsupportedFileSystem`; `damage` where the path is a symbolic link or the store has directories
  ///   of somebody else's in it. The store is as it was then, but where only the sync after the exchange fails.
  func recover(
    from damage: StoreError, open: () throws(StoreError) -> Store
  ) throws(StoreError) -> (Store, SalvageReport?) {
    let fileSystem = environment.fileSystem
    let directory = try Directory(path: path, fileSystem: fileSystem, readOnly: false)
    // Of several openers one does it: a second copy would take the place of the first, and of what was
    // written there by then.
    guard try directory.lock(),
      try directory.identity()
        == Directory(path: path, fileSystem: fileSystem, readOnly: false).identity()
    else { throw .locked(path: path) }
    // Perhaps somebody else has done it meanwhile.
    do throws(StoreError) { return (try open(), nil) } catch {
      guard case .corrupt = error else { throw error }
    }
    // Whoever opens the store for writing is kept away until its name is another's.
    let lockFile = try directory.openFile(FileName.lock, mode: .readOnly)
    try lockFile?.lockStore(at: path, exclusively: false)
    defer { lockFile?.unlock() }
    log(.error, .recovery, path: path, "\(damage); what is sound is copied, and it is set aside")
    let report = try replace(directory, damage)
    lockFile?.unlock()
    let store = try open()
    // Its lock is held until here.
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
      log(.error, .recovery, path: path, "it is left as it is, since the path is a symbolic link")
      throw damage
    }
    for other in try directory.names() where other != FileName.quarantine {
      if !Self.isFileOfCopy(other), try directory.holdsDirectory(other) {
        log(.error, .recovery, path: path, "it is left as it is, since there is a directory in it")
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
        "nothing was changed, since it could not be salvaged: \(error)")
      throw error
    }
    let copy = try Directory(path: copyPath, fileSystem: fileSystem, readOnly: false)
    do throws(StoreError) { try distrustMarks(in: copyPath, report) } catch {
      try? empty(copy)
      throw error
    }
    // Nobody writes to the copy before its new name is durable.
    let lockFile = try copy.openFile(FileName.lock, mode: .readOnly)
    try lockFile?.lockStore(at: copyPath, exclusively: true)
    defer { lockFile?.unlock() }
    // DURABILITY: the copy is durable under its name. A crash before the exchange leaves the corrupt store
    // in its place, and a copy that nobody asks for; after it, the copy is in its place. Until the sync
    // either may be found after a power loss: so the lock of the copy is held until then, and whoever opens
    // a cache that may have come so to its place syncs the parent first (`DiskCache.openStore`).
    do throws(StoreError) {
      guard try parent.exchange(name, with: copyName) else {
        throw .unsupportedFileSystem(
          path: parent.path, name: "a filesystem on which names cannot be exchanged")
      }
    } catch {
      // So that attempts in vain do not fill the disk; but not if it happened all the same.
      let found = try? Directory(path: path, fileSystem: fileSystem, readOnly: false).identity()
      if try found == directory.identity() { try? empty(copy) }
      throw error
    }
    log(
      .warning, .recovery, path: path,
      "\(report.entryCount) entries were salvaged, known keys that are lost: "
        + "\(report.lostKeyCount), bytes: \(report.lostByteCount); what it was is at \(copyPath)")
    try parent.synchronize()
    return report
  }

  /// Where something was lost, marks of removed tags may be among it. So all tags count as removed, which the copy says
  /// before it takes its place: whoever opens it later knows nothing of the loss.
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

  /// A directory that an earlier attempt has left, emptied.
  private func unfinishedCopy(
    of name: String, in parent: Directory
  ) throws(StoreError) -> String? {
    for other in try parent.names() where Self.isCopyName(other, of: name) {
      // Whatever cannot be looked at, holds anything else or is somebody's is left alone.
      do throws(StoreError) {
        let directory = try Directory(
          path: "\(parent.path)/\(other)", fileSystem: environment.fileSystem, readOnly: false)
        let names = try directory.names()
        guard names.isEmpty || names.contains(FileName.unfinishedCopy),
          names.allSatisfy(Self.isFileOfCopy)
        else { continue }
        // Whoever writes a copy has it locked.
        let lockFile = try directory.openFile(FileName.lock, mode: .readOnly)
        if let lockFile, try !lockFile.lock(exclusively: true) { continue }
        defer { lockFile?.unlock() }
        try empty(directory)
        return other
      } catch { continue }
    }
    return nil
  }

  /// Whether this makes directories of such a name beside a store: not those of a cache whose own name is
  /// alike.
  private static func isCopyName(_ other: String, of name: String) -> Bool {
    guard other.hasPrefix(name + infix) else { return false }
    let stamp = other.dropFirst(name.count + infix.count)
    return !stamp.isEmpty && stamp.allSatisfy { $0.isASCII && $0.isNumber }
  }

  /// Whether a copy of a store may have a file of the name.
  private static func isFileOfCopy(_ name: String) -> Bool {
    [
      FileName.lock, FileName.manifest, FileName.newManifest, FileName.nextManifest,
      FileName.newNextManifest, FileName.emptiedManifest, FileName.reserve, FileName.unfinishedCopy,
    ].contains(name) || FileName.isSegment(name) || FileName.isCheckpoint(name)
  }

  /// Removes the files of a copy; what says that it is one goes last.
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
  /// Whether the marks of removed tags that were copied are surely those that there were, and hide what they hid.
  fileprivate var keepsMarks: Bool { isComplete && warnings.isEmpty }
}
