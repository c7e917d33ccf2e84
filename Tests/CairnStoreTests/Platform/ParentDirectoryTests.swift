import CairnEssentials
import CairnLibC
import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Directories above a store")
struct ParentDirectoryTests {
  /// Found by a review: only the last created directory was durable in its parent.
  @Test("Created parents survive a power cut", arguments: 0..<20)
  func durable(seed: UInt64) throws {
    let disk = SimulatedDisk()
    let process = SimulatedProcess.start(on: disk, seed: seed)
    try Directory.createParents(of: "/a/b/c/store", fileSystem: process.fileSystem)
    process.kill()
    var cut = RandomCut(FuzzRandom(seed: seed))
    let after = disk.afterPowerCut(&cut)
    #expect(after.names(at: "/").contains("a"))
    #expect(after.names(at: "/a") == ["b"])
    #expect(after.names(at: "/a/b") == ["c"])
  }

  @Test("A new store's directory is made durable even if it existed before")
  func existing() throws {
    // An earlier run may have created the directory without syncing it into its parent. A power cut
    // then takes it, with everything acknowledged in it.
    let scene = try StoreScene()
    try FileManager.default.createDirectory(atPath: scene.path, withIntermediateDirectories: false)
    let calls = Mutex<[String]>([])
    scene.fileSystem.setHook { event in
      if event.call == .synchronize && event.file.hasSuffix("/..") {
        calls.withLock { $0.append("parent") }
      }
      if event.call == .rename { calls.withLock { $0.append("manifest") } }
      return nil
    }
    _ = try scene.open()
    #expect(calls.withLock { $0.prefix(2) } == ["parent", "manifest"])
  }

  @Test(
    "A store can be created in a directory whose parent cannot be synced",
    arguments: [EACCES, EINVAL])
  func notSynced(number: Int32) throws {
    // A mount point under a read-only image (fsync: EINVAL), or a directory in a parent that one
    // may only pass through (open: EACCES): the store cannot make its name durable.
    let scene = try StoreScene()
    try FileManager.default.createDirectory(atPath: scene.path, withIntermediateDirectories: false)
    scene.fileSystem.setHook { event in
      guard event.file.hasSuffix("/..") else { return nil }
      return event.call == (number == EACCES ? .openDirectoryAtPath : .synchronize) ? number : nil
    }
    try scene.open().setValue("1", forKey: "a")
  }
}

@Suite("Syncs of a directory")
struct DirectorySyncTests {
  @Test("Every sync after a failed one fails, because the kernel reports an error once")
  func failure() throws {
    let directory = try TemporaryDirectory()
    let system = FaultyFileSystem()
    let files = try Directory(readingOnly: directory.path, fileSystem: system)
    try files.synchronize()
    system.arm(FaultyFileSystem.Fault(call: .synchronize, index: 0, errorNumber: EIO))
    let error = storeError { try files.synchronize() }
    guard case .system(let failure)? = error, failure.errorNumber == EIO else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(storeError { try files.synchronize() } == error)
  }
}
