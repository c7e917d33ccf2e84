import CairnStore
import Foundation
import Synchronization
import Testing

@Suite("What errors say")
struct ErrorTextTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func text(_ body: () throws -> Void) -> String {
    storeError(body).map { "\($0)" } ?? "no error"
  }

  @Test("A store whose parent is missing says that it must exist")
  func parent() throws {
    let path = directory("a/b/c")
    let text = text { _ = try Store(path) }
    #expect(text.hasPrefix("mkdir \(path): No such file or directory"))
    #expect(text.hasSuffix("; the directory that it is to be made in must exist"))
  }

  @Test(
    "A store that may only be read says how", arguments: [EACCES, EPERM, EROFS])
  func readOnlyFiles(number: Int32) throws {
    let store = try Store(directory.store)
    try store.setValue("value", forKey: "key")
    try store.close()
    let fileSystem = HookFileSystem()
    let isDone = Atomic(false)
    fileSystem.setHook { event in
      guard event.call == .open, event.file == "LOCK",
        !isDone.exchange(true, ordering: .sequentiallyConsistent)
      else { return nil }
      return number
    }
    let text = text { _ = try Store(directory.store, fileSystem: fileSystem) }
    #expect(text.contains("\(directory.store)/LOCK: "))
    #expect(text.hasSuffix("; Store(readingAt:) opens it for reading"), "\(text)")
    #expect(fileSystem.openDescriptorCount == 0)
  }

  @Test("A file that cannot be read at all says nothing of reading", arguments: [true, false])
  func unreadableFiles(readOnly: Bool) throws {
    try Store(directory.store).close()
    let fileSystem = HookFileSystem()
    fileSystem.setHook { $0.call == .open && $0.file == "LOCK" ? EACCES : nil }
    let text = text {
      _ = try Store(directory.store, fileSystem: fileSystem, readOnly: readOnly)
    }
    #expect(text.hasSuffix("LOCK: Permission denied (errno 13)"), "\(text)")
  }

  @Test("A store that this process holds says so")
  func lockedHere() throws {
    let here = "\(directory.store): the store is open in this process already"
    let elsewhere = "\(directory.store): the store is open elsewhere"
    let store = try Store(directory.store)
    #expect(text { _ = try Store(directory.store) } == here)
    #expect(text { _ = try Store(directory.store, readOnly: true) } == here)
    #expect(text { _ = try Store.verify(path: directory.store) } == here)
    #expect(text { _ = try Store.salvage(path: directory.store, to: directory("copy")) } == here)
    try store.close()
    let helper = try Helper("hold", directory.store)
    _ = try helper.read()
    #expect(text { _ = try Store(directory.store) } == elsewhere)
    #expect(text { _ = try Store.verify(path: directory.store) } == elsewhere)
    helper.kill()
  }

  @Test("Readers that this process has open keep its own writers out, until the last is closed")
  func readersHere() throws {
    try Store(directory.store).close()
    let readers = try (0..<2).map { _ in try Store(directory.store, readOnly: true) }
    for reader in readers {
      #expect(text { _ = try Store(directory.store) }.contains("in this process"))
      try reader.close()
    }
    try Store(directory.store).close()
  }
}
