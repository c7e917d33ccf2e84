import CairnEssentials
import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("What errors say")
struct ErrorTextTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func text(_ body: () throws -> Void) -> String {
    storeError(body).map { "\($0)" } ?? "no error"
  }

  @Test("If the parent of a store is missing, the error says that it must exist")
  func parent() throws {
    let path = directory("a/b/c")
    let text = text { _ = try Store(path) }
    #expect(text.hasPrefix("mkdir \(path): No such file or directory"))
    #expect(text.hasSuffix("; the parent directory must exist"))
  }

  /// One flipped bit refuses the whole store, so the error says what helps and what it costs.
  @Test("Damage in the log of an unclosed store: the error says what a salvage does and loses")
  func damagedTail() throws {
    let killed = try KilledStore { store in
      for key in ["a", "b", "b", "c"] { try store.setValue("value of \(key)", forKey: key) }
    }
    let name = try killed.lastSegment
    let records = try killed.lastRecords
    for (index, keys) in [(0, ["b", "c"]), (2, ["a", "b", "c"])] {
      let image = killed.image.flipping(name, at: records[index].offset)
      let directory = try TemporaryDirectory()
      try image.write(to: directory.store)
      let text = text { _ = try Store(directory.store) }
      #expect(text.hasPrefix("\(directory.store): corrupt: \(name) at offset"))
      #expect(
        text.hasSuffix(
          "; cairn salvage copies the sound records into a new store, but loses the damaged one, "
            + "so that its key may be missing or have an older value"))
      // That is what it does.
      let salvaged = try Salvaged(image)
      #expect(salvaged.values.keys.sorted() == keys)
      #expect(!salvaged.report.isComplete)
    }
  }

  @Test("If a store cannot be created for lack of random bytes, the error names its path")
  func creationNamesPath() throws {
    let directory = try TemporaryDirectory()
    let fileSystem = FaultyFileSystem(
      fault: FaultyFileSystem.Fault(call: .randomBytes, index: 0, errorNumber: EIO))
    let environment = Environment(fileSystem: fileSystem, background: ManualBackgroundQueue())
    let error = storeError {
      _ = try Store(
        path: directory.store, configuration: StoreConfiguration(), environment: environment,
        readOnly: false)
    }
    guard case .system(let failure) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(failure.path.hasPrefix(directory.store))
  }

  @Test(
    "If it is unknown whether a directory is inside another, the error names the right one")
  func insideNamesPath() throws {
    // A salvage first checks whether the copy would be inside the damaged store.
    let directory = try TemporaryDirectory()
    // The first check is part of opening the store's directory.
    let fileSystem = FaultyFileSystem(
      fault: FaultyFileSystem.Fault(call: .status, index: 1, errorNumber: EIO))
    try FileManager.default.createDirectory(
      atPath: directory.store, withIntermediateDirectories: true)
    let source = try Directory(path: directory.store, fileSystem: fileSystem, readOnly: true)
    let place = try Directory(readingOnly: "/", fileSystem: fileSystem)
    let error = storeError { _ = try place.isInside(source) }
    guard case .system(let failure) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(failure.path == directory.store)
  }

  @Test(
    "If a store may only be read, the error says how", arguments: [EACCES, EPERM, EROFS])
  func readOnlyFiles(number: Int32) throws {
    let store = try Store(directory.store)
    try store.setValue("value", forKey: "key")
    try store.close()
    let fileSystem = FaultyFileSystem()
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

  @Test(
    "If a file cannot be read at all, the error does not mention reading", arguments: [true, false])
  func unreadableFiles(readOnly: Bool) throws {
    try Store(directory.store).close()
    let fileSystem = FaultyFileSystem()
    fileSystem.setHook { $0.call == .open && $0.file == "LOCK" ? EACCES : nil }
    let text = text {
      _ = try Store(directory.store, fileSystem: fileSystem, readOnly: readOnly)
    }
    #expect(text.hasSuffix("LOCK: Permission denied (errno 13)"), "\(text)")
  }

  @Test("Links, a missing LOCK, and a store removed while open: the error says what happened")
  func places() throws {
    let path = directory.store
    var store = try Store(path)
    try store.setValue("value", forKey: "key")
    try store.close()
    try FileManager.default.linkItem(atPath: path + "/MANIFEST", toPath: directory("link"))
    #expect(
      text { _ = try Store(path) }.hasSuffix(
        "it has 2 hard links; copy a store's files instead of linking them"))
    try FileManager.default.removeItem(atPath: directory("link"))
    try FileManager.default.removeItem(atPath: path + "/LOCK")
    #expect(
      text { _ = try Store(path, readOnly: true) }.hasSuffix(
        "it has no file LOCK; opening it for writing creates one"))
    store = try Store(path)
    try store.setValue("new", forKey: "key")
    try FileManager.default.removeItem(atPath: path + "/LOCK")
    #expect(
      text { try store.sync() }.contains("the directory, or the file LOCK in it, was removed"))
  }

  @Test("If this process holds a store, the error says so")
  func lockedHere() throws {
    let here = "\(directory.store): the store is already open in this process"
    let store = try Store(directory.store)
    #expect(text { _ = try Store(directory.store) } == here)
    #expect(text { _ = try Store(directory.store, readOnly: true) } == here)
    #expect(text { _ = try Store.verify(path: directory.store) } == here)
    #expect(text { _ = try Store.salvage(path: directory.store, to: directory("copy")) } == here)
    try store.close()
    let process = try KillWriterProcess(["hold", directory.store])
    _ = try process.read()
    let hasLocks = (try? String(contentsOfFile: "/proc/locks", encoding: .utf8)) != nil
    let place = hasLocks ? "in process \(process.identifier)" : "elsewhere"
    let elsewhere = "\(directory.store): the store is open \(place)"
    for told in [
      text { _ = try Store(directory.store) }, text { _ = try Store.verify(path: directory.store) },
    ] {
      let since = told.dropFirst(elsewhere.count)
      #expect(told.hasPrefix(elsewhere), "\(told)")
      // The text has this only if the system shows which processes hold locks.
      #expect(
        since.isEmpty || since.contains(/^, running since \d{4}-\d\d-\d\dT[\d:]{8}Z$/),
        "\(told)")
    }
    process.kill()
  }

  @Test("This process's readers keep its own writers out until the last is closed")
  func readersHere() throws {
    try Store(directory.store).close()
    let readers = try (0..<2).map { _ in try Store(directory.store, readOnly: true) }
    for reader in readers {
      #expect(text { _ = try Store(directory.store) }.contains("in this process"))
      try reader.close()
    }
    try Store(directory.store).close()
  }

  @Test("The error of a damaged value names the directory first, however the value is read")
  func damagedValue() throws {
    let store = try Store(directory.store)
    try store.setValue("damaged value", forKey: "key")
    try store.close()
    let name = try damage("damaged value")
    for readOnly in [true, false] {
      let store = try Store(directory.store, readOnly: readOnly)
      for text in [
        text { _ = try store.value(forKey: "key") }, text { _ = try store.entry(forKey: "key") },
        text { _ = try store.withValue(forKey: "key") { _ in } },
        text { _ = try store.snapshot().value(forKey: "key") },
      ] {
        #expect(text.hasPrefix("\(directory.store): corrupt: \(name) at offset "), "\(text)")
      }
      try store.close()
    }
  }

  @Test("The error of an open names the directory first")
  func damagedManifest() throws {
    try Store(directory.store).close()
    try overwriteFile("\(directory.store)/MANIFEST", [1, 2, 3, 4], at: 0)
    for readOnly in [true, false] {
      let text = text { _ = try Store(directory.store, readOnly: readOnly) }
      #expect(text.hasPrefix("\(directory.store): corrupt: MANIFEST at offset "), "\(text)")
    }
  }

  /// Overwrites four bytes of a value and returns the name of its file.
  private func damage(_ value: String) throws -> String {
    for name in try FileManager.default.contentsOfDirectory(atPath: directory.store) {
      guard name.hasPrefix("seg-"),
        let place = try Data(contentsOf: URL(filePath: "\(directory.store)/\(name)"))
          .firstRange(of: Data(value.utf8))
      else { continue }
      try overwriteFile("\(directory.store)/\(name)", [1, 2, 3, 4], at: place.lowerBound)
      return name
    }
    throw CocoaError(.fileNoSuchFile)
  }
}
