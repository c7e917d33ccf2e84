/// A directory in which a store is made that has the contents of another, by a salvage or a backup:
/// files first, and at the very end the manifest. Until then it is no store, and until shortly before
/// a file in it says why.
struct StoreCopy: ~Copyable {
  let directory: Directory
  private let lockFile: File
  private var names = [FileName.lock, FileName.unfinishedCopy]

  private init(directory: Directory, lockFile: File) {
    self.directory = directory
    self.lockFile = lockFile
  }

  /// Throws unless the path is that of an empty directory, or one where nothing is, outside the
  /// store.
  static func checkDestination(_ path: String, outside source: Directory) throws(StoreError) {
    let fileSystem = source.fileSystem
    var place: Directory
    do throws(StoreError) {
      place = try Directory(path: path, fileSystem: fileSystem, readOnly: false)
      guard try place.names().allSatisfy({ $0 == FileName.lostAndFound }) else {
        throw .unusableDestination(path: path, reason: "it is not empty")
      }
    } catch {
      if case .notAStore(_, let reason) = error {
        throw .unusableDestination(path: path, reason: reason)
      }
      guard case .noStore = error else { throw error }
      // A new directory must not change the store's own: look before it is made.
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
      throw .unusableDestination(path: path, reason: "it lies inside the store")
    }
  }

  /// Makes the directory, which must be empty if it is there, and says in it what it is for.
  static func begin(at path: String, outside source: Directory) throws(StoreError) -> StoreCopy {
    try Directory.create(path: path, fileSystem: source.fileSystem)
    try checkDestination(path, outside: source)
    let directory = try Directory(path: path, fileSystem: source.fileSystem, readOnly: false)
    // Whoever makes this file first has the directory, unless a store is made in it at the same
    // moment: then that has the lock.
    let lockFile: File
    do { lockFile = try directory.createFile(FileName.lock) } catch {
      if case .system(let failure) = error, failure.errorNumber == SystemError.exists {
        throw .unusableDestination(path: directory.path, reason: "it is not empty")
      }
      throw error
    }
    var isOurs = false
    do throws(StoreError) {
      try lockFile.lockStore(at: directory.path, exclusively: true)
      guard try directory.names().filter({ $0 != FileName.lostAndFound }) == [FileName.lock] else {
        throw .unusableDestination(path: directory.path, reason: "it is not empty")
      }
      isOurs = true
      let mark = try directory.createFile(FileName.unfinishedCopy)
      let text = "A copy of a store into this directory has not finished. Remove it all.\n"
      try Array(text.utf8).withSpan { (bytes) throws(StoreError) in try mark.write(bytes, at: 0) }
    } catch {
      // Without the lock the file may be that of a store by now.
      if isOurs {
        try? directory.unlink(FileName.unfinishedCopy)
        try? directory.unlink(FileName.lock)
      }
      lockFile.unlock()
      throw error
    }
    return StoreCopy(directory: directory, lockFile: lockFile)
  }

  /// Makes a file, which `discard` removes.
  mutating func createFile(_ name: String) throws(StoreError) -> File {
    names.append(name)
    return try directory.createFile(name)
  }

  /// Makes the directory a store, durably. All files that the manifest lists are durable by then, but
  /// for their names.
  mutating func finish(_ manifest: Manifest) throws(StoreError) {
    // It is no store without a manifest either, and once it is one nothing may fail any more for
    // which it would be removed again, nor may a crash leave a store beside a note that says so.
    try directory.unlink(FileName.unfinishedCopy)
    // DURABILITY: the names of the files, and that of the note, before the manifest; and the name of
    // the directory before the call returns.
    try directory.synchronize()
    try Directory.synchronizeParent(of: directory.path, fileSystem: directory.fileSystem)
    let file = ManifestFile(directory: directory)
    names += [FileName.newManifest, FileName.manifest]
    try file.write(try file.prepare(manifest))
    try file.install()
    // From here on it is a store, durably, and nothing can fail any more.
    file.reserve(manifest)
    lockFile.unlock()
  }

  /// Removes what was written: the directory is left empty, as far as that is possible.
  func discard() {
    // The manifest goes first, then the files, then the note, and last the lock file, while its lock
    // is held: who has that file open already finds that it has no name any more.
    for name in names.reversed() { try? directory.unlink(name) }
    try? directory.synchronize()
    lockFile.unlock()
  }
}
