import CairnEssentials
import CairnLibC
import CairnStore
import Synchronization
import Testing

/// Storing into a mapped page for which the disk has no room is not an error: it raises SIGBUS and
/// ends the process. So a store maps segments for writing only if the filesystem shows that it
/// reserves blocks.
@Suite("If blocks are not provably reserved, records are appended by system calls")
struct ReservationTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  @Test("Nothing is mapped for writing; sealed segments are mapped for reading")
  func appendsByCalls() throws {
    let fileSystem = FaultyFileSystem(reservesBlocks: false)
    let store = try Store(directory.store, fileSystem: fileSystem)
    for number in 0..<200 {
      try store.setValue([UInt8](repeating: 1, count: 1000), forKey: "\(number)")
    }
    try store.close()
    let second = try Store(directory.store, fileSystem: fileSystem)
    try second.setValue("v", forKey: "key")
    for number in 0..<200 { #expect(try second.value(forKey: "\(number)")?.count == 1000) }
    #expect(fileSystem.count(of: .map) > 0)
    #expect(fileSystem.writableMappingCount == 0)
    try second.close()
  }

  @Test("If blocks are reserved, segments are mapped for writing")
  func appendsToMappings() throws {
    let fileSystem = FaultyFileSystem(reservesBlocks: true)
    let store = try Store(directory.store, fileSystem: fileSystem)
    try store.setValue("v", forKey: "key")
    #expect(fileSystem.writableMappingCount > 0)
    try store.close()
  }

  @Test("Signals that arrive faster than space is allocated do not prevent the allocation")
  func interruptedAllocation() throws {
    // In tmpfs, Linux before 6.10 undoes an interrupted allocation. If it were restarted as a
    // whole, it would never end under a timer.
    let scene = try StoreScene()
    let store = try scene.open()
    let interruptions = Mutex(0)
    scene.fileSystem.setHook { event in
      guard event.call == .allocate, event.byteCount > 32_768 else { return nil }
      return interruptions.withLock { count in
        count += 1
        return count < 1000 ? EINTR : ENOSPC
      }
    }
    try store.setValue([UInt8].filled(1_000_000), forKey: "a")
    #expect(interruptions.withLock { $0 } > 0)
    #expect(try scene.killed().open().count() == 1)
  }

  @Test("A check for reserved blocks leaves the length of the lock file unchanged")
  func keepsLockFile() throws {
    try Store(directory.store).close()
    let attributes = try FileManager.default.attributesOfItem(atPath: "\(directory.store)/LOCK")
    #expect(attributes[.size] as? Int == 0)
  }

  // MARK: Filesystems without fallocate

  /// The real file system, but without fallocate.
  private func withoutAllocation() -> FaultyFileSystem {
    let fileSystem = FaultyFileSystem()
    fileSystem.setHook { event in
      event.call == .allocate || event.call == .reservesBlocks ? EOPNOTSUPP : nil
    }
    return fileSystem
  }

  @Test("Without fallocate, an open for writing is refused before there is a manifest")
  func refusedAtOpen() throws {
    let error = storeError { _ = try Store(directory.store, fileSystem: withoutAllocation()) }
    #expect(
      error
        == .unsupportedFileSystem(
          path: directory.store, name: "a filesystem without fallocate, unless by system calls only"
        ))
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.store)
    #expect(names == ["LOCK"])
  }

  @Test("Without fallocate, a store can be opened for reading, and for writing by system calls")
  func openedByCalls() throws {
    let store = try Store(directory.store)
    try store.setValue("v", forKey: "key")
    try store.close()
    let reader = try Store(directory.store, fileSystem: withoutAllocation(), readOnly: true)
    #expect(try reader.text("key") == "v")
    try reader.close()
    let writer = try Store(
      directory.store, .small { $0.mapsFiles = false }, fileSystem: withoutAllocation())
    try writer.setValue("w", forKey: "key")
    #expect(try writer.text("key") == "w")
    try writer.close()
  }

  // MARK: Layers

  @Test(
    "Under overlayfs, the layer below decides",
    arguments: OverlayMount.Below.allCases.filter { !$0.isMissing })
  func layerBelow(below: OverlayMount.Below) throws {
    let overlay = try OverlayMount(over: below)
    let fileSystem = FaultyFileSystem()
    let store = try Store("\(overlay.path)/store", fileSystem: fileSystem)
    for number in 0..<100 { try store.setValue("0123456789", forKey: "\(number)") }
    #if canImport(Darwin)
      // The shim shows overlayfs as APFS.
      let reserves = false
    #else
      // tmpfs reserves blocks, but a layer above does not show this.
      let reserves = below == .ext4 || below == .xfs
    #endif
    try #require((fileSystem.writableMappingCount > 0) == reserves)
    try store.sync()
    try overlay.fill()
    var writtenCount = 0
    let error = storeError {
      while writtenCount < 1000 {
        try store.setValue("0123456789", forKey: "more \(writtenCount)")
        try store.sync()
        writtenCount += 1
      }
    }
    if let error, case .noSpace = error {} else { #expect(error == nil) }
    for number in 0..<100 { #expect(try store.text("\(number)") == "0123456789") }
    try? store.close()
  }

  @Test(
    "For a store in the lower layer, the upper one decides, because written files go there",
    .enabled(if: !OverlayMount.Below.ext4.isMissing && !OverlayMount.Below.tmpfs.isMissing))
  func lowerLayer() throws {
    let lower = try OverlayMount(over: .ext4)
    let store = try Store("\(lower.path)/store")
    try store.setValue("v", forKey: "key")
    try store.close()
    let upper = try OverlayMount(over: .tmpfs, lower: lower.upper)
    let fileSystem = FaultyFileSystem()
    let second = try Store("\(upper.path)/store", fileSystem: fileSystem)
    try second.setValue("w", forKey: "key")
    #expect(fileSystem.writableMappingCount == 0)
    #expect(try second.text("key") == "w")
    try second.close()
  }
}
