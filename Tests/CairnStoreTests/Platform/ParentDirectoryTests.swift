import CairnStore
import FuzzSupport
import Glibc
import Testing

@Suite("Directories above a store")
struct ParentDirectoryTests {
  /// Found by a review: only the last of them was durable, in its parent.
  @Test("Those that are made survive a power cut", arguments: 0..<20)
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
}

@Suite("Syncs of a directory")
struct DirectorySyncTests {
  @Test("All that come after one that failed fail: the kernel tells of an error once")
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
