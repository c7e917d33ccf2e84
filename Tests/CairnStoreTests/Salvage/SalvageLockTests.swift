import CairnRepair
import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

/// Who owns the destination of a salvage, and when it becomes a store.
@Suite("Salvage: the destination's lock")
struct SalvageLockTests {
  let directory: TemporaryDirectory
  let copy: String

  init() throws {
    directory = try TemporaryDirectory()
    copy = directory("copy")
    let store = try Store(directory.store, background: ManualBackgroundQueue())
    try store.setValue("value", forKey: "key")
    try store.close()
  }

  private func salvage(_ fileSystem: any FileSystem) throws(StoreError) {
    _ = try Store.salvage(
      path: directory.store, to: copy,
      environment: Environment(fileSystem: fileSystem, background: ManualBackgroundQueue()))
  }

  /// Runs `body` after the destination's file LOCK is created and before it is locked.
  private func beforeLock(_ body: @escaping @Sendable () -> Void) -> FaultyFileSystem {
    let fileSystem = FaultyFileSystem()
    let copy = copy
    let isDone = Atomic(false)
    fileSystem.setWatch { call in
      guard call == .lock, FileManager.default.fileExists(atPath: copy + "/LOCK") else { return }
      if !isDone.exchange(true, ordering: .sequentiallyConsistent) { body() }
    }
    return fileSystem
  }

  @Test("A store that gets the lock first keeps it, and its file")
  func overtaken() throws {
    let overtaking = Overtaking(path: copy)
    let fileSystem = beforeLock { overtaking.open() }
    #expect(storeError { try salvage(fileSystem) } == .locked(path: copy, inThisProcess: true))
    let other = try #require(overtaking.store)
    #expect(FileManager.default.fileExists(atPath: copy + "/LOCK"))
    #expect(storeError { _ = try Store(copy) } == .locked(path: copy, inThisProcess: true))
    try other.setValue("mine", forKey: "key")
    try other.close()
    let again = try Store(copy)
    #expect(try again.text("key") == "mine")
    try again.close()
  }

  @Test("A store that was created and closed meanwhile keeps its file LOCK too")
  func overtakenAndClosed() throws {
    let overtaking = Overtaking(path: copy)
    let fileSystem = beforeLock {
      overtaking.open()
      try? overtaking.store?.close()
    }
    #expect(
      storeError { try salvage(fileSystem) }
        == .unusable(path: copy, reason: "it is not empty"))
    let reader = try Store(copy, readOnly: true)
    try reader.close()
  }

  @Test("A lock on a file that a failed salvage removed is useless", arguments: [true, false])
  func removed(readOnly: Bool) throws {
    try salvage(FaultyFileSystem())
    let copy = copy
    let fileSystem = beforeLock { try? FileManager.default.removeItem(atPath: copy + "/LOCK") }
    #expect(
      storeError { _ = try Store(copy, fileSystem: fileSystem, readOnly: readOnly) }
        == .locked(path: copy))
    #expect(fileSystem.openDescriptorCount == 0)
    let store = try Store(copy)
    #expect(try store.text("key") == "value")
    try store.close()
  }

  @Test("The note about an unfinished salvage is gone before the copy is a store")
  func note() throws {
    let copy = copy
    let seen = Mutex((note: false, both: false))
    let fileSystem = FaultyFileSystem()
    fileSystem.setWatch { _ in
      let names = (try? FileManager.default.contentsOfDirectory(atPath: copy)) ?? []
      seen.withLock {
        let hasNote = names.contains("UNFINISHED-COPY")
        if hasNote { $0.note = true }
        if hasNote && names.contains("MANIFEST") { $0.both = true }
      }
    }
    try salvage(fileSystem)
    #expect(seen.withLock { $0.note && !$0.both })
  }
}

/// Opens a store while another thread is in the middle of its work.
private final class Overtaking: Sendable {
  private let path: String
  private let opened = Mutex<Store?>(nil)

  init(path: String) { self.path = path }

  var store: Store? { opened.withLock { $0 } }

  func open() { opened.withLock { $0 = try? Store(path) } }
}
