/// A directory that a salvage or a backup makes into a copy of a store: files first, the manifest
/// last. Until the manifest is there, the directory is not a store. Until shortly before then, a
/// file in the directory says that the copy is unfinished.
package struct StoreCopy: ~Copyable {
  package let directory: Directory
  /// The manifest that the directory has had so far, if it is an earlier backup.
  package private(set) var earlier: Manifest?
  private let lockFile: File
  private var names: [String]

  private init(directory: Directory, lockFile: File, earlier: Manifest? = nil) {
    self.directory = directory
    self.lockFile = lockFile
    self.earlier = earlier
    names = earlier == nil ? [FileName.lock, FileName.unfinishedCopy] : []
  }

  /// Throws unless the path is outside the store and is an empty directory or does not exist.
  package static func checkDestination(
    _ path: String, outside source: Directory
  ) throws(StoreError) {
    let fileSystem = source.fileSystem
    var place: Directory
    do throws(StoreError) {
      place = try Directory(path: path, fileSystem: fileSystem, readOnly: false)
      guard try place.names().allSatisfy({ $0 == FileName.lostAndFound }) else {
        throw .unusable(path: path, reason: "it is not empty")
      }
    } catch {
      if case .notAStore(_, let reason) = error {
        throw .unusable(path: path, reason: reason)
      }
      guard case .noStore = error else { throw error }
      // Check the parent first, because creating a directory inside the store would change the
      // store.
      let parent = Directory.parentPath(of: path)
      do throws(StoreError) {
        place = try Directory(readingOnly: parent, fileSystem: fileSystem)
      } catch {
        guard case .system(var failure) = error, failure.errorNumber == SystemError.noEntry else {
          throw error
        }
        failure.advice = .parentMustExist
        throw .system(failure)
      }
    }
    if try place.isInside(source) {
      throw .unusable(path: path, reason: "it lies inside the store")
    }
  }

  /// Creates the directory, or uses an empty one, and marks it as an unfinished copy.
  package static func begin(
    at path: String, outside source: Directory
  ) throws(StoreError) -> StoreCopy {
    try Directory.create(path: path, fileSystem: source.fileSystem)
    try checkDestination(path, outside: source)
    let directory = try Directory(path: path, fileSystem: source.fileSystem, readOnly: false)
    // The first process to create this file owns the directory, unless a store is created there at
    // the same moment: the lock then belongs to that store.
    let lockFile: File
    do { lockFile = try directory.createFile(FileName.lock) } catch {
      if case .system(let failure) = error, failure.errorNumber == SystemError.exists {
        throw .unusable(path: directory.path, reason: "it is not empty")
      }
      throw error
    }
    var isOurs = false
    do throws(StoreError) {
      try lockFile.lockStore(at: directory.path, exclusively: true)
      guard try directory.names().filter({ $0 != FileName.lostAndFound }) == [FileName.lock] else {
        throw .unusable(path: directory.path, reason: "it is not empty")
      }
      isOurs = true
      let mark = try directory.createFile(FileName.unfinishedCopy)
      let text = "This copy of a store was not finished. Delete the whole directory.\n"
      try mark.write(Array(text.utf8).rawSpan, at: 0)
    } catch {
      // Without the lock, the file may now belong to a store.
      if isOurs {
        try? directory.unlink(FileName.unfinishedCopy)
        try? directory.unlink(FileName.lock)
      }
      lockFile.unlock()
      throw error
    }
    return StoreCopy(directory: directory, lockFile: lockFile)
  }

  // MARK: An earlier backup

  /// Begins to renew an earlier backup of a store. It stays whole until `finish` has made it the new
  /// one.
  ///
  /// - Returns: `nil` if there is no store at the path.
  /// - Throws: `unusable` if it is another store, or has been opened for writing. `locked`.
  package static func resume(
    at path: String, of storeIdentifier: [UInt8], outside source: Directory
  ) throws(StoreError) -> StoreCopy? {
    let directory: Directory
    do throws(StoreError) {
      directory = try Directory(path: path, fileSystem: source.fileSystem, readOnly: false)
    } catch {
      switch error {
      case .noStore, .notAStore: return nil
      default: throw error
      }
    }
    func backup() throws(StoreError) -> Manifest? {
      let file = ManifestFile(directory: directory)
      let found: Manifest?
      do throws(StoreError) { found = try file.read() } catch { throw error.located(in: path) }
      guard let manifest = found else { return nil }
      guard manifest.storeIdentifier == storeIdentifier, manifest.isUnopened else {
        throw .unusable(
          path: path, reason: "it is a store of its own, not an earlier backup of this one")
      }
      return manifest
    }
    guard try backup() != nil else { return nil }
    if try directory.isInside(source) {
      throw .unusable(path: path, reason: "it lies inside the store")
    }
    guard let lockFile = try directory.openFile(FileName.lock, mode: .readWrite) else {
      throw .unusable(path: path, reason: "it has no lock file")
    }
    try lockFile.lockStore(at: directory.path, exclusively: true)
    do throws(StoreError) {
      guard let manifest = try backup() else {
        throw .unusable(path: path, reason: "it is being removed")
      }
      return StoreCopy(directory: directory, lockFile: lockFile, earlier: manifest)
    } catch {
      lockFile.unlock()
      throw error
    }
  }

  /// Announces the files that will be created in an earlier backup, so that an open removes them if
  /// they stay unfinished. Removes what an interrupted attempt has left.
  package mutating func announce(_ ids: [UInt64]) throws(StoreError) {
    guard var manifest = earlier else { return }
    let leftover = Set(manifest.pendingIDs + manifest.retiredIDs)
    var hasChanged = false
    for name in try directory.names() where !manifest.listedFiles.contains(name) {
      if let id = FileName.identifier(in: name), leftover.contains(id) || id >= manifest.nextID {
        try directory.unlink(name)
        hasChanged = true
      }
    }
    // DURABILITY: the removals are on disk before a manifest drops the ids.
    if hasChanged { try directory.synchronize() }
    (manifest.pendingIDs, manifest.retiredIDs) = (ids, [])
    manifest.nextID = max(manifest.nextID, (ids.max() ?? 0) + 1)
    manifest.generation &+= 1
    let file = ManifestFile(directory: directory)
    try file.synchronize(try file.prepare(manifest))
    try file.install()
    earlier = manifest
  }

  /// A file of the earlier backup, to be made longer.
  package func openFile(_ name: String) throws(StoreError) -> File? {
    try directory.openFile(name, mode: .readWrite)
  }

  /// Puts the new manifest into the place of the earlier one.
  private mutating func renew(_ earlier: Manifest, _ manifest: Manifest) throws(StoreError) {
    let old = earlier.listedFiles.subtracting(manifest.listedFiles)
    var manifest = manifest
    manifest.generation = earlier.generation &+ 1
    manifest.retiredIDs = Set(old.compactMap { FileName.identifier(in: $0) }).sorted()
    let file = ManifestFile(directory: directory)
    // DURABILITY: the names of the new files are on disk before the manifest.
    try directory.synchronize()
    try file.synchronize(try file.prepare(manifest))
    // From here on, the new manifest may be the one on disk, so no file that it lists may go.
    names = []
    try file.install()
    for name in old { try? directory.unlink(name) }
    file.reserve(manifest)
    lockFile.unlock()
  }

  // MARK: Files

  /// Creates a file that `discard` would remove.
  package mutating func createFile(_ name: String) throws(StoreError) -> File {
    do throws(StoreError) {
      let file = try directory.createFile(name)
      names.append(name)
      return file
    } catch {
      // A file that was there already is not ours.
      if error.asFailure.errorNumber != SystemError.exists { names.append(name) }
      throw error
    }
  }

  /// Makes the directory a store, durably. All files that the manifest lists are already durable,
  /// except for their names.
  package mutating func finish(_ manifest: Manifest) throws(StoreError) {
    if let earlier { return try renew(earlier, manifest) }
    // Without a manifest, the directory is not a store, even without the note. Once it is a store,
    // no failure may remove it, and no crash may leave a note that calls it unfinished.
    try directory.unlink(FileName.unfinishedCopy)
    // DURABILITY: the names of the files and the removal of the note are on disk before the
    // manifest, and the directory's own name before the call returns.
    try directory.synchronize()
    try Directory.synchronizeParent(of: directory.path, fileSystem: directory.fileSystem)
    let file = ManifestFile(directory: directory)
    names += [FileName.newManifest, FileName.manifest]
    try file.synchronize(try file.prepare(manifest))
    try file.installFirst()
    // From here on, the directory is a durable store, and nothing can fail.
    file.reserve(manifest)
    lockFile.unlock()
  }

  /// Removes everything that was written. Leaves the directory empty, if possible, or the earlier
  /// backup.
  package func discard() {
    // The manifest is removed first, then the files, then the note, and last the lock file, while
    // its lock is held. A process that already has the lock file open then finds that the file no
    // longer has a name.
    for name in names.reversed() { try? directory.unlink(name) }
    try? directory.synchronize()
    lockFile.unlock()
  }
}
