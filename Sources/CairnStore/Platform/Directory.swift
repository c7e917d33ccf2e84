/// An open directory. Owns its descriptor. All files are reached relative to the descriptor, so
/// replacing the path cannot redirect them.
package final class Directory: Sendable {
  package let fileSystem: any FileSystem
  package let path: String
  private let descriptor: Int32
  /// The user that must own every file in the directory.
  private let owner: UInt32
  private let volume: VolumeStatus
  /// The limit on the disk space of the files, or `nil` if there is none.
  private let quota: DiskQuota?
  /// The error from a failed sync. The lock is held during each sync.
  private let syncFailure = Lock<StoreError?>(nil)

  /// Why a path is invalid, or `nil` if it is valid. A system call would use only what precedes a
  /// zero byte.
  package static func flaw(of path: String) -> String? {
    path.isEmpty ? "the path is empty" : path.utf8.contains(0) ? "the path has a byte of 0" : nil
  }

  /// Opens the directory at `path` only to inspect it, whoever owns it.
  package init(readingOnly path: String, fileSystem: any FileSystem) throws(StoreError) {
    if let flaw = Self.flaw(of: path) { throw .notAStore(path: path, reason: flaw) }
    do {
      descriptor = try fileSystem.openDirectory(path: path)
    } catch {
      throw error.storeError(path: path)
    }
    self.fileSystem = fileSystem
    self.path = path
    owner = 0
    quota = nil
    volume = VolumeStatus(unsupportedName: nil, mapsFiles: false)
  }

  /// Opens the directory at `path`, following a symbolic link if it is one.
  ///
  /// - Throws: `noStore` if nothing is there, `unsafeFile` if it belongs to another user,
  ///   `unsupportedFileSystem`, `system`. (Root could open anybody's directory, but the files that
  ///   root creates there would lock the owner out.)
  package init(
    path: String, fileSystem: any FileSystem, readOnly: Bool, byteLimit: Int? = nil
  ) throws(StoreError) {
    if let flaw = Self.flaw(of: path) { throw .notAStore(path: path, reason: flaw) }
    let descriptor: Int32
    do {
      descriptor = try fileSystem.openDirectory(path: path)
    } catch  where error.errorNumber == SystemError.noEntry {
      throw .noStore(path: path)
    } catch  where error.errorNumber == SystemError.notADirectory {
      throw .notAStore(path: path, reason: "it is not a directory")
    } catch {
      throw error.storeError(path: path)
    }
    do throws(SystemError) {
      owner = try fileSystem.status(of: descriptor).owner
      volume = try fileSystem.volume(of: descriptor)
    } catch {
      fileSystem.close(descriptor)
      throw error.storeError(path: path)
    }
    self.fileSystem = fileSystem
    self.path = path
    self.descriptor = descriptor
    quota = byteLimit.map { DiskQuota(byteLimit: $0) }
    // From here on `deinit` closes the descriptor.
    let user = fileSystem.userIdentifier()
    guard owner == user || (user == 0 && readOnly) else {
      throw .unsafeFile(path: path, reason: "it belongs to another user")
    }
    if let name = volume.unsupportedName {
      throw .unsupportedFileSystem(path: path, name: name)
    }
    quota?.begin { [weak self] () throws(StoreError) in try self?.allocatedByteCount() }
  }

  deinit { fileSystem.close(descriptor) }

  /// Whether files in the directory are mapped for reading.
  package var mapsFiles: Bool { volume.mapsFiles }

  /// Whether its files can take this many more bytes.
  package func hasRoom(for byteCount: Int) throws(StoreError) -> Bool {
    if try diskFreeByteCount() < byteCount { return false }
    return try quota?.hasRoom(for: byteCount) ?? true
  }

  /// How many more bytes its files may take within their limit: `.max` without one. Looks at the
  /// files only if fewer than `enough` are known to be free.
  package func limitedFreeByteCount(enough: Int) throws(StoreError) -> Int {
    guard let quota else { return .max }
    let least = quota.leastFreeByteCount
    return least >= enough ? least : try quota.freeByteCount
  }

  /// Like `freeByteCount`, but perhaps less: checks no file.
  package func leastFreeByteCount() throws(StoreError) -> Int {
    min(try diskFreeByteCount(), quota?.leastFreeByteCount ?? .max)
  }

  /// How many more bytes its files can take: what is free on the filesystem, or less if they have a
  /// limit.
  package func freeByteCount() throws(StoreError) -> Int {
    max(0, min(try diskFreeByteCount(), try quota?.freeByteCount ?? .max))
  }

  /// How many more bytes can be allocated on its filesystem.
  package func diskFreeByteCount() throws(StoreError) -> Int {
    do { return try fileSystem.freeByteCount(of: descriptor) } catch {
      throw error.storeError(path: path)
    }
  }

  /// What leaves no room for this many more bytes, or `nil` if there is room, or if that is unknown.
  package func limit(onAdding byteCount: Int) -> SpaceLimit? {
    if let free = try? diskFreeByteCount(), free < byteCount { return .disk }
    if let free = try? quota?.freeByteCount, free < byteCount { return .quota }
    return nil
  }

  /// The disk space that the files take.
  private func allocatedByteCount() throws(StoreError) -> Int {
    var sum = 0
    for name in try names() {
      sum += try allocatedByteCount(of: name)
    }
    return sum
  }

  /// The disk space that a file takes: 0 for a folder, if there is no file, and for a name that this
  /// process may not look at.
  private func allocatedByteCount(of name: String) throws(StoreError) -> Int {
    do {
      let status = try fileSystem.status(of: name, in: descriptor)
      return status.kind == .regular ? status.allocatedByteCount : 0
    } catch  where Self.passedOver.contains(error.errorNumber) {
      return 0
    } catch {
      throw error.storeError(path: "\(path)/\(name)")
    }
  }

  private static let passedOver = [
    SystemError.noEntry, SystemError.accessDenied, SystemError.notPermitted,
  ]

  private func named<Value>(
    _ name: String, _ body: () throws(SystemError) -> Value
  ) throws(StoreError) -> Value {
    do { return try body() } catch { throw error.storeError(path: "\(path)/\(name)") }
  }

  /// Random numbers, for example for salts.
  package func randomNumbers(count: Int) throws(StoreError) -> [UInt64] {
    if count == 0 { return [] }
    do {
      let bytes = try fileSystem.randomBytes(count: 8 * count)
      return (0..<count).map { bytes.rawSpan.load(UInt64.self, at: 8 * $0) }
    } catch {
      throw error.storeError(path: path)
    }
  }

  package func names() throws(StoreError) -> [String] {
    do { return try fileSystem.names(in: descriptor) } catch {
      throw error.storeError(path: path)
    }
  }

  /// Opens a file, or returns `nil` if there is none.
  ///
  /// - Throws: `unsafeFile` for anything but a regular file with one link and the directory's
  ///   owner; `system`.
  package func openFile(_ name: String, mode: OpenMode) throws(StoreError) -> File? {
    let opened: Int32
    do { opened = try fileSystem.open(name, in: descriptor, mode: mode) } catch
      where error.errorNumber == SystemError.noEntry
    {
      return nil
    } catch {
      throw error.storeError(path: "\(path)/\(name)")
    }
    let status: FileStatus
    do { status = try fileSystem.status(of: opened) } catch {
      fileSystem.close(opened)
      throw error.storeError(path: "\(path)/\(name)")
    }
    let file = File(
      fileSystem: fileSystem, descriptor: opened, name: name, path: "\(path)/\(name)",
      identity: status.identity, quota: quota)
    // The file's name was removed between the two calls.
    if status.linkCount == 0 { return nil }
    let reason: String? =
      if status.kind != .regular {
        "it is \(status.kind.rawValue)"
      } else if status.owner != owner && mode != .createNew {
        "it belongs to another user than its directory"
      } else if status.linkCount != 1 {
        "it has \(status.linkCount) hard links; copy a store's files instead of linking them"
      } else {
        nil
      }
    if let reason { throw .unsafeFile(path: file.path, reason: reason) }
    return file
  }

  /// Creates a file that must not exist yet.
  package func createFile(_ name: String) throws(StoreError) -> File {
    guard let file = try openFile(name, mode: .createNew) else {
      throw SystemError(call: "openat", errorNumber: SystemError.noEntry)
        .storeError(path: "\(path)/\(name)")
    }
    return file
  }

  package func rename(_ name: String, to newName: String) throws(StoreError) {
    try named(name) { () throws(SystemError) in
      try fileSystem.rename(name, in: descriptor, to: newName, in: descriptor)
    }
  }

  /// Exchanges the files of two names; `false` if the kernel, the filesystem or a sandbox does not
  /// allow that.
  package func exchange(_ name: String, with other: String) throws(StoreError) -> Bool {
    do {
      try fileSystem.exchange(name, with: other, in: descriptor)
      return true
    } catch
      where error.isRefusal || error.errorNumber == SystemError.invalidArgument
    {
      return false
    } catch {
      throw error.storeError(path: "\(path)/\(name)")
    }
  }

  /// Removes a file, if it exists.
  package func unlink(_ name: String) throws(StoreError) {
    guard let quota else { return try unlinkFile(name) }
    try quota.removing {
      (try? allocatedByteCount(of: name)) ?? 0
    } _: { () throws(StoreError) in
      try unlinkFile(name)
    }
  }

  private func unlinkFile(_ name: String) throws(StoreError) {
    do { try fileSystem.unlink(name, in: descriptor) } catch
      where error.errorNumber == SystemError.noEntry
    {
    } catch {
      throw error.storeError(path: "\(path)/\(name)")
    }
  }

  /// Makes the names in the directory durable. After a failure, every later call fails, because the
  /// kernel reports an error to only one of several syncs.
  package func synchronize() throws(StoreError) {
    try syncFailure.withLock { (failure) throws(StoreError) in
      if let failure { throw failure }
      do throws(SystemError) { try fileSystem.synchronize(descriptor) } catch {
        failure = error.storeError(path: path)
        throw error.storeError(path: path)
      }
    }
  }

  /// Moves files into the folder `folder` of this directory, and creates the folder if necessary. A
  /// name that is taken there gets a suffix. No other process may move files at the same time.
  package func move(_ names: [String], intoFolder folder: String) throws(StoreError) {
    do { try fileSystem.makeDirectory(folder, in: descriptor) } catch
      where error.errorNumber == SystemError.exists
    {
    } catch {
      throw error.storeError(path: "\(path)/\(folder)")
    }
    try named(folder) { () throws(SystemError) in
      let target = try fileSystem.openDirectory(folder, in: descriptor)
      defer { fileSystem.close(target) }
      let taken = Set(try fileSystem.names(in: target))
      for name in names {
        var newName = name
        var number = 1
        while taken.contains(newName) {
          number += 1
          newName = "\(name).\(number)"
        }
        try fileSystem.rename(name, in: descriptor, to: newName, in: target)
      }
      try fileSystem.synchronize(target)
    }
  }

  /// Whether this directory is `other` or below it, found by walking up to the root; `false` if the
  /// filesystem has no file identities.
  package func isInside(_ other: Directory) throws(StoreError) -> Bool {
    let status: FileStatus
    do { status = try fileSystem.status(of: other.descriptor) } catch {
      throw error.storeError(path: other.path)
    }
    guard let target = status.identity else { return false }
    do {
      var current = try fileSystem.openDirectory(".", in: descriptor)
      defer { fileSystem.close(current) }
      var identity = try fileSystem.status(of: current).identity
      while identity != target {
        let parent = try fileSystem.openDirectory("..", in: current)
        fileSystem.close(current)
        current = parent
        let above = try fileSystem.status(of: parent).identity
        if above == identity { return false }
        identity = above
      }
      return true
    } catch {
      throw error.storeError(path: path)
    }
  }

  /// The path of the directory that contains the last component of `path`, by the text alone.
  package static func parentPath(of path: String) -> String {
    var trimmed = path[...]
    while trimmed.count > 1, trimmed.last == "/" { trimmed.removeLast() }
    guard let slash = trimmed.lastIndex(of: "/") else { return "." }
    return String(trimmed[...slash])
  }

  /// The last component of `path`; empty if it has none.
  package static func lastName(of path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? ""
  }

  /// Locks the directory itself until the last reference to this object is released. Returns
  /// `false` if another process has the lock. Opening a store does not use this lock.
  package func lock() throws(StoreError) -> Bool {
    do { return try fileSystem.lock(descriptor, exclusively: true) } catch {
      throw error.storeError(path: path)
    }
  }

  /// Whether the name is that of a directory rather than of a link to one.
  package func holdsDirectory(_ name: String) throws(StoreError) -> Bool {
    do {
      fileSystem.close(try fileSystem.openDirectory(name, in: descriptor))
      return true
    } catch
      where [SystemError.notADirectory, SystemError.tooManyLinks, SystemError.noEntry]
      .contains(error.errorNumber)
    {
      return false
    } catch {
      throw error.storeError(path: "\(path)/\(name)")
    }
  }

  /// The identity of the directory, or `nil` if it is unknown.
  package func identity() throws(StoreError) -> FileIdentity? {
    do { return try fileSystem.status(of: descriptor).identity } catch {
      throw error.storeError(path: path)
    }
  }
}
