import CairnStore
import FuzzSupport
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
