internal import CairnStore

/// Sets a store aside that cannot be opened since it is corrupt, and puts what is sound of it in its place.
///
/// The copy is made under the name that the old one will have, and then the two exchange their names, at
/// once: at every moment there is a store under the path, and the corrupt one is somewhere beside it or
/// still there. Nothing is ever removed but copies that were not finished, which say so themselves.
struct StoreQuarantine {
  let path: String
  let environment: Environment
  let clock: any WallClock
  let log: (@Sendable (String) -> Void)?

  /// - Parameters:
  ///   - damage: why the store could not be opened.
  ///   - open: opens it.
  /// - Returns: the store, and what was salvaged; `nil` where somebody else had done so meanwhile.
  /// - Throws: `locked` where somebody else is about it, or has the store open; what a salvage throws;
  ///   `unsupportedFileSystem`. The store is as it was then.
  func recover(
    from damage: StoreError, open: () throws(StoreError) -> Store
  ) throws(StoreError) -> (Store, SalvageReport?) {
    let fileSystem = environment.fileSystem
    let directory = try Directory(path: path, fileSystem: fileSystem, readOnly: false)
    // Of several openers one does it: a second copy would take the place of the first, and of what was
    // written there by then.
    if !plantedInCache(.quarantineUnlocked) {
      guard try directory.lock(),
        try directory.identity()
          == Directory(path: path, fileSystem: fileSystem, readOnly: false).identity()
      else { throw .locked(path: path) }
    }
    // Perhaps somebody else has done it meanwhile.
    do throws(StoreError) { return (try open(), nil) } catch {
      guard case .corrupt = error else { throw error }
    }
    // Whoever opens the store for writing is kept away until its name is another's.
    let lockFile = try directory.openFile(FileName.lock, mode: .readOnly)
    if let lockFile, try !lockFile.lock(exclusively: false) { throw .locked(path: path) }
    defer { lockFile?.unlock() }
    log?("\(path): \(damage); what is sound is copied, and it is set aside")
    let report = try replace()
    lockFile?.unlock()
    return (try open(), report)
  }

  private func replace() throws(StoreError) -> SalvageReport {
    let fileSystem = environment.fileSystem
    let parent = try Directory(
      readingOnly: Directory.parentPath(of: path), fileSystem: fileSystem)
    let name = Directory.lastName(of: path)
    var copyName = try freshName(of: name, in: parent)
    if let leftName = try unfinishedCopy(of: name, in: parent) { copyName = leftName }
    let copyPath = parent.path == "/" ? "/\(copyName)" : "\(parent.path)/\(copyName)"
    let report: SalvageReport
    do throws(StoreError) {
      report = try Store.salvage(
        path: path, to: copyPath, environment: environment, clock: clock)
    } catch {
      log?("\(path): nothing was changed, since it could not be salvaged: \(error)")
      throw error
    }
    // DURABILITY: the copy is durable under its name. A crash before the exchange leaves the corrupt store
    // in its place, and a copy that nobody asks for; after it, the copy is in its place. Until the sync
    // either may be found after a power loss, so nothing is written to the copy before it.
    if plantedInCache(.corruptStoreWiped) {
      try empty(Directory(path: path, fileSystem: fileSystem, readOnly: false))
    }
    guard try parent.exchange(name, with: copyName) else {
      try empty(Directory(path: copyPath, fileSystem: fileSystem, readOnly: false))
      throw .unsupportedFileSystem(
        path: parent.path, name: "a filesystem on which names cannot be exchanged")
    }
    if !plantedInCache(.quarantineNotSynced) { try parent.synchronize() }
    log?(
      "\(path): \(report.entryCount) entries were salvaged, \(report.lostKeyCount) known keys and "
        + "\(report.lostByteCount) bytes lost; what it was is at \(copyPath)")
    return report
  }

  /// A directory that an earlier attempt has left, emptied.
  private func unfinishedCopy(
    of name: String, in parent: Directory
  ) throws(StoreError) -> String? {
    for other in try parent.names() where other.hasPrefix(name + Self.infix) {
      // Whatever cannot be looked at is left alone.
      guard
        let directory = try? Directory(
          path: "\(parent.path)/\(other)", fileSystem: environment.fileSystem, readOnly: false),
        let names = try? directory.names(),
        names.isEmpty || names.contains(FileName.unfinishedCopy)
      else { continue }
      try empty(directory)
      return other
    }
    return nil
  }

  /// Removes the files of a copy; what says that it is one goes last.
  private func empty(_ directory: Directory) throws(StoreError) {
    for name in try directory.names() where name != FileName.unfinishedCopy {
      try directory.unlink(name)
    }
    try directory.unlink(FileName.unfinishedCopy)
  }

  private static let infix = ".quarantine-"

  private func freshName(of name: String, in parent: Directory) throws(StoreError) -> String {
    let names = Set(try parent.names())
    var stamp = clock.now().millisecondsSinceEpoch
    while names.contains("\(name)\(Self.infix)\(stamp)") { stamp &+= 1 }
    return "\(name)\(Self.infix)\(stamp)"
  }
}
