import CairnEssentials
import CairnLibC
import CairnRepair
import CairnStore
import Testing

@Suite("Permissions and unsafe files")
struct SecurityTests {
  static let isRoot = geteuid() == 0
  /// A user restricted by file modes: "nobody" if this is root, who is not restricted.
  static let user = isRoot ? 65_534 : Int(geteuid())

  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  func mode(_ path: String) throws -> UInt32 {
    var status = stat()
    try check("stat", unsafe stat(path, &status))
    return UInt32(status.st_mode & 0o7777)
  }

  func makeStore() throws {
    let store = try Store(directory.store)
    for number in 0..<70 {
      try store.setValue(
        [UInt8](repeating: 1, count: 1000), forKey: number == 0 ? "key" : "\(number)")
    }
    try store.close()
  }

  @Test(
    "The directory has mode 0700 and every file 0600, whatever the umask",
    arguments: [0o000, 0o022, 0o077, 0o777])
  func modes(mask: Int) throws {
    let result = try KillWriterProcess.run("umask", directory.store, mask)
    #expect(result.status == 0, "\(result.output)")
    #expect(try mode(directory.store) == 0o700)
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.store)
    #expect(names.count >= 4)
    for name in names { #expect(try mode("\(directory.store)/\(name)") == 0o600, "\(name)") }
  }

  @Test(
    "A path that is empty or has a zero byte is refused, and nothing is created",
    arguments: ["", "a\0b"])
  func flawedPath(name: String) throws {
    try makeStore()
    let path = name.isEmpty ? name : directory(name)
    let reason = name.isEmpty ? "the path is empty" : "the path has a byte of 0"
    let refused = StoreError.unusable(path: path, reason: reason)
    let noStore = StoreError.notAStore(path: path, reason: reason)
    #expect("\(refused)" == path.replacing("\0", with: "\\x00") + ": not usable: \(reason)")
    #expect(!"\(noStore)".utf8.contains(0))
    let store = try Store(readingAt: directory.store)
    #expect(throws: refused) { try Store(path: path) }
    #expect(throws: noStore) { try Store(readingAt: path) }
    #expect(throws: noStore) { try Store.verify(path: path) }
    #expect(throws: noStore) { try Store.salvage(path: path, to: directory("copy")) }
    #expect(throws: StoreError.self) { try store.backup(to: path) }
    #expect(throws: refused) {
      try [UInt8]().withBytes { (bytes) throws(StoreError) in
        try File.replace(at: path, with: bytes, fileSystem: SystemFileSystem())
      }
    }
    try store.close()
    #expect(throws: StoreError.self) { try Store.salvage(path: directory.store, to: path) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory("")) == ["store"])
  }

  @Test("The quarantine has mode 0700")
  func quarantineMode() throws {
    let image = try FileTests.closed().changingManifest { $0.nextID += 10 }
    try image.write(to: directory.store)
    try writeFile("\(directory.store)/seg-0000000000000005", [1])
    try Store(directory.store).close()
    #expect(try mode("\(directory.store)/quarantine") == 0o700)
  }

  /// The kind of file in place of the expected one.
  enum Stand: CaseIterable, Sendable {
    case symbolicLink, danglingLink, hardLink, pipe, directory
  }

  @Test(
    "Anything but a regular file with one link is unsafe, and nothing hangs",
    arguments: ["MANIFEST", "LOCK", "segment"], Stand.allCases)
  func unsafeFile(name: String, stand: Stand) throws {
    try makeStore()
    let name = name == "segment" ? try Image(of: directory.store).segmentNames[0] : name
    let path = "\(directory.store)/\(name)"
    let moved = directory("moved")
    try check("rename", unsafe rename(path, moved))
    switch stand {
    case .symbolicLink: try check("symlink", unsafe symlink(moved, path))
    case .danglingLink: try check("symlink", unsafe symlink(directory("nowhere"), path))
    case .hardLink: try check("link", unsafe link(moved, path))
    case .pipe: try check("mkfifo", unsafe mkfifo(path, 0o600))
    case .directory: try check("mkdir", unsafe mkdir(path, 0o700))
    }
    for readOnly in [true, false] {
      let error = storeError { _ = try Store(directory.store, readOnly: readOnly) }
      guard case .unsafeFile(path, _) = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
    }
    #expect(storeError { _ = try Store.verify(path: directory.store) } != nil)
    #expect(unsafe access(directory("nowhere"), F_OK) != 0, "the link was followed")
  }

  @Test("A symbolic link in the place of the new manifest is not followed")
  func newManifestLink() throws {
    try makeStore()
    try writeFile(directory("victim"), [1, 2, 3])
    _ = unsafe unlink(directory.store + "/MANIFEST.new")
    try check("symlink", unsafe symlink(directory("victim"), directory.store + "/MANIFEST.new"))
    // The link may be refused or replaced, but not followed.
    _ = storeError {
      let store = try Store(directory.store)
      try store.setValue("v", forKey: "new")
      try store.close()
    }
    #expect(try readFile(directory("victim")) == [1, 2, 3])
  }

  @Test("A symbolic link in the place of the quarantine is not followed")
  func quarantineLink() throws {
    let image = try FileTests.closed().changingManifest { $0.nextID += 10 }
    try image.write(to: directory.store)
    try writeFile("\(directory.store)/seg-0000000000000005", [1])
    try Image().write(to: directory("elsewhere"))
    try check("symlink", unsafe symlink(directory("elsewhere"), directory.store + "/quarantine"))
    #expect(storeError { _ = try Store(directory.store) } != nil)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory("elsewhere")) == [])
  }

  @Test("A store may be reached through a symbolic link to its directory")
  func directoryLink() throws {
    try makeStore()
    try check("symlink", unsafe symlink(directory.store, directory("link")))
    #expect(try Store(directory("link")).contains("key"))
  }

  @Test("Descriptors 0, 1 and 2 are not used, even if they are free")
  func standardStreams() throws {
    let result = try KillWriterProcess.run("no-standard-streams", directory.store)
    #expect(result.status == 0)
  }

  func change(owner: Int, of path: String) throws {
    try check("chown", unsafe chown(path, uid_t(owner), gid_t(owner)))
  }

  /// Makes a store that belongs to the user.
  func makeStoreOfUser() throws {
    try makeStore()
    guard Self.isRoot else { return }
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.store)
    try change(owner: Self.user, of: directory.store)
    for file in names { try change(owner: Self.user, of: "\(directory.store)/\(file)") }
  }

  /// The user's results of opening, reading and writing.
  func asUser() throws -> [String] {
    try check("chmod", unsafe chmod(directory.path, 0o755))
    let result = try KillWriterProcess.run("user", directory.store, Self.user)
    #expect(result.status == 0, "\(result.output)")
    return result.output.split(separator: "\n").map(String.init)
  }

  @Test(
    "A store in a directory that another user may not enter is a system error",
    .enabled(if: isRoot, "only root can give files away")
  )
  func foreignDirectory() throws {
    try makeStore()
    let lines = try asUser()
    #expect(lines.count == 1)
    #expect(lines[0].contains("errno 13"))
  }

  @Test(
    "A store in a directory of another user is unsafe",
    .enabled(if: isRoot, "only root can give files away"))
  func openForeignDirectory() throws {
    try makeStore()
    try check("chmod", unsafe chmod(directory.store, 0o777))
    #expect(try asUser()[0].contains("it belongs to another user"))
  }

  @Test(
    "A file that does not belong to the owner of its directory is unsafe",
    .enabled(if: isRoot, "only root can give files away"),
    arguments: ["LOCK", "MANIFEST", "segment"])
  func foreignFile(name: String) throws {
    try makeStoreOfUser()
    let name = name == "segment" ? try Image(of: directory.store).segmentNames[0] : name
    try change(owner: 0, of: "\(directory.store)/\(name)")
    try check("chmod", unsafe chmod("\(directory.store)/\(name)", 0o666))
    let lines = try asUser()
    #expect(lines[0].contains("another user"))
    #expect(lines[0].contains(name))
    // Root does not accept it either.
    guard case .unsafeFile = storeError({ _ = try Store(directory.store) }) else {
      Issue.record("root opens it")
      return
    }
  }

  @Test(
    "An unreadable file is a system error that names it",
    arguments: ["LOCK", "MANIFEST", "segment"])
  func unreadable(name: String) throws {
    try makeStoreOfUser()
    let name = name == "segment" ? try Image(of: directory.store).segmentNames[0] : name
    try check("chmod", unsafe chmod("\(directory.store)/\(name)", 0))
    let lines = try asUser()
    #expect(lines.count == 1)
    #expect(lines[0].contains(name))
    #expect(lines[0].contains("errno 13"))
  }

  @Test(
    "In a directory that is not writable, reads work and writes are system errors")
  func unwritable() throws {
    try makeStoreOfUser()
    try check("chmod", unsafe chmod(directory.store, 0o555))
    let lines = try asUser()
    #expect(lines.count == 3)
    #expect(lines[0] == "open: done")
    #expect(lines[1] == "read: done")
    #expect(lines[2].contains("errno 13"))
  }

  @Test(
    "A store of another user is opened by its owner",
    .enabled(if: isRoot, "only root can give files away"))
  func ownStore() throws {
    try makeStoreOfUser()
    #expect(try asUser() == ["open: done", "read: done", "write: done"])
  }

  @Test(
    "Root does not write into another user's store",
    .enabled(if: isRoot, "only root can give files away"))
  func otherUsersStore() throws {
    // If root left its own files there, the owner would be locked out for good.
    let scene = try StoreScene()
    let first = try scene.open()
    try first.setValue("1", forKey: "a")
    try first.close()
    for name in try scene.names() + ["."] {
      try FileManager.default.setAttributes(
        [.ownerAccountID: 1234], ofItemAtPath: "\(scene.path)/\(name)")
    }
    let before = try scene.names().sorted()
    #expect {
      try scene.open()
    } throws: {
      if case StoreError.unsafeFile = $0 { true } else { false }
    }
    #expect(try scene.names().sorted() == before)
    #expect(try scene.open(readOnly: true).count() == 1)
  }

  @Test(
    "With any limit on descriptors, there is a typed error or success, and no leak",
    arguments: [false, true])
  func descriptorLimit(timersRun: Bool) throws {
    let result = try KillWriterProcess.run("descriptor-limit", directory.store, timersRun ? 1 : 0)
    #expect(result.status == 0, "\(result.output)")
  }
}
