import CairnStore
import FuzzSupport
import Testing

@Suite("The simulated disk")
struct SimulatedDiskTests {
  /// A file of two sectors. The first was synced, and both were written to since.
  private func disk() throws -> SimulatedDisk {
    let disk = SimulatedDisk(sectorByteCount: 512)
    disk.setContents([UInt8](repeating: 1, count: 1024), of: "/file")
    let fileSystem = SimulatedFileSystem(disk: disk, seed: 1)
    let directory = try Directory(path: "/", fileSystem: fileSystem, readOnly: false)
    let file = try #require(try directory.openFile("file", mode: .readWrite))
    try file.write([UInt8](repeating: 2, count: 1024).rawSpan, at: 0)
    return disk
  }

  @Test("Each unsynced sector may or may not exist; synced sectors do")
  func sectors() throws {
    let disk = try disk()
    var found: Set<[UInt8]> = []
    for seed in 0..<200 as Range<UInt64> {
      var cut = RandomCut(FuzzRandom(seed: seed))
      let bytes = try #require(disk.afterPowerCut(&cut).contents(of: "/file"))
      #expect(bytes.count == 1024)
      found.insert([bytes[0], bytes[512]])
    }
    #expect(found.isSuperset(of: [[1, 1], [1, 2], [2, 1], [2, 2]]))
    // The running system sees what was written.
    #expect(disk.contents(of: "/file") == [UInt8](repeating: 2, count: 1024))
  }

  @Test("After a sync, no cut removes anything; after a failed sync, only the cache has the data")
  func syncs() throws {
    for fails in [false, true] {
      let disk = try disk()
      let fileSystem = SimulatedFileSystem(disk: disk, seed: 4)
      let directory = try Directory(path: "/", fileSystem: fileSystem, readOnly: false)
      let file = try #require(try directory.openFile("file", mode: .readWrite))
      if fails { fileSystem.intervene = { $0 == .synchronizeData ? .fail(5) : nil } }
      let error = (try? file.synchronizeData()) == nil
      #expect(error == fails)
      fileSystem.intervene = nil
      // The second sync has nothing to write and reports success.
      try file.synchronizeData()
      #expect(disk.contents(of: "/file") == [UInt8](repeating: 2, count: 1024))
      var losses = 0
      for seed in 0..<20 as Range<UInt64> {
        var cut = RandomCut(FuzzRandom(seed: seed))
        if disk.afterPowerCut(&cut).contents(of: "/file")?.contains(1) == true { losses += 1 }
      }
      #expect(fails == (losses > 0))
    }
  }
}
