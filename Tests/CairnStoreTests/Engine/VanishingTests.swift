import CairnEssentials
import CairnLibC
import CairnStore
import FuzzSupport
import Testing

@Suite("A store reports that its directory was removed while it was open")
final class VanishingTests: StoreSuite {
  private let messages = Messages()

  private func openStore(_ durability: Durability = .process) throws -> Store {
    let store = try makeStore {
      $0.durability = durability
      $0.log = DiagnosticLog { [messages] in messages.add($0.text) }
    }
    try store.setValue("v", forKey: "key")
    return store
  }

  private func removeDirectory() throws {
    try FileManager.default.removeItem(atPath: directory.store)
  }

  private var vanished: StoreError { .vanished(path: directory.store) }

  @Test("No durable write is acknowledged afterwards")
  func durableWrite() throws {
    let store = try openStore(.durable)
    try removeDirectory()
    #expect(storeError { try store.setValue("w", forKey: "key") } == vanished)
    #expect(storeError { _ = try store.removeValue(forKey: "key") } == vanished)
    #expect(storeError { try store.sync() } == vanished)
    #expect(storeError { try store.removeAll() } == vanished)
  }

  @Test("A write a second later is refused, and this is logged once")
  func writeLater() throws {
    let store = try openStore()
    try removeDirectory()
    clock.advance(by: .seconds(1))
    for _ in 0..<3 { #expect(storeError { try store.setValue("w", forKey: "a") } == vanished) }
    #expect(
      storeError { try store.write { batch in try batch.setValue("w", forKey: "a") } } == vanished)
    queue.runAll()
    #expect(messages.all.count { $0.contains("the directory was removed") } == 1)
    #expect(messages.all.count == 1)
  }

  @Test("A call that begins another segment is refused")
  func nextSegment() throws {
    let store = try openStore()
    try removeDirectory()
    let error = storeError {
      for number in 0..<1000 {
        try store.setValue([UInt8](repeating: 1, count: 1000), forKey: "\(number)")
      }
    }
    #expect(error == vanished)
  }

  @Test("A round of maintenance notices the removal")
  func maintenance() throws {
    let store = try openStore()
    try removeDirectory()
    #expect(storeError { try store.maintain() } == vanished)
    #expect(storeError { try store.setValue("w", forKey: "a") } == vanished)
  }

  @Test("Reads continue")
  func reads() throws {
    let store = try openStore()
    try removeDirectory()
    #expect(storeError { try store.maintain() } == vanished)
    #expect(try store.text("key") == "v")
  }

  @Test("Closing throws the error, and releases everything")
  func closing() throws {
    let store = try openStore()
    try removeDirectory()
    #expect(storeError { try store.close() } == vanished)
    #expect(storeError { _ = try store.text("key") } == .closed(path: directory.store))
    let second = try makeStore()
    try second.setValue("w", forKey: "key")
    try second.close()
  }

  @Test("A store that another opener created in the same directory is left alone")
  func otherStore() throws {
    let store = try openStore()
    for name in try FileManager.default.contentsOfDirectory(atPath: directory.store) {
      try FileManager.default.removeItem(atPath: "\(directory.store)/\(name)")
    }
    let second = try Store(directory.store, .small(clock: clock))
    try second.setValue("other", forKey: "key")
    try second.sync()
    #expect(storeError { try store.removeAll() } == vanished)
    #expect(storeError { try store.close() } == vanished)
    queue.runAll()
    try second.close()
    let third = try Store(directory.store, .small(clock: clock))
    #expect(try third.text("key") == "other")
    #expect(try third.statistics().recovery.quarantinedFiles.isEmpty)
    try third.close()
  }

  @Test("The next segment takes no file of the other store, even within the second")
  func otherStoresSegment() throws {
    let value = [UInt8](repeating: 1, count: 1000)
    let store = try openStore()
    for name in try FileManager.default.contentsOfDirectory(atPath: directory.store) {
      try FileManager.default.removeItem(atPath: "\(directory.store)/\(name)")
    }
    let second = try Store(
      directory.store, .small(clock: clock), background: ManualBackgroundQueue())
    for number in 0..<200 { try second.setValue(value, forKey: "\(number)") }
    let error = storeError {
      for number in 0..<200 { try store.setValue(value, forKey: "\(number)") }
    }
    #expect(error == vanished)
    try second.close()
    let third = try Store(directory.store, .small(clock: clock))
    for number in 0..<200 { #expect(try third.value(forKey: "\(number)") == value) }
    try third.close()
  }

  @Test("A store leaves no manifest in a directory that is being removed")
  func noManifest() throws {
    let system = FaultyFileSystem()
    let store = try Store(
      directory.store, .small(clock: clock), fileSystem: system, background: queue)
    try store.setValue("v", forKey: "key")
    let path = directory.store
    system.setHook { event in
      // The store has checked that its directory is there.
      if event.call == .exchange {
        for name in ["LOCK", "MANIFEST"] { _ = unsafe unlink("\(path)/\(name)") }
      }
      return nil
    }
    #expect(storeError { try store.checkpoint() } == vanished)
    system.setHook(nil)
    #expect(try !FileManager.default.contentsOfDirectory(atPath: path).contains("MANIFEST"))
    #expect(storeError { try store.close() } == vanished)
  }

  @Test("A renamed directory does not count as removed")
  func renamed() throws {
    let store = try openStore(.durable)
    try FileManager.default.moveItem(atPath: directory.store, toPath: directory("moved"))
    clock.advance(by: .seconds(1))
    try store.setValue("w", forKey: "key")
    try store.close()
    let moved = try Store(directory("moved"), .small(clock: clock))
    #expect(try moved.text("key") == "w")
    try moved.close()
  }
}
