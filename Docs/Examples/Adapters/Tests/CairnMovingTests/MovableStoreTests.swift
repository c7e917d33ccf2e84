import Cairn
import CairnMoving
import Foundation
import Synchronization
import Testing

@Suite("A store that moves", .timeLimit(.minutes(2)))
final class MovableStoreTests: Sendable {
  private let root = NSTemporaryDirectory() + "/moving-\(UUID().uuidString)"
  private var configuration: StoreConfiguration {
    var configuration = StoreConfiguration()
    configuration.durability = .process
    return configuration
  }

  init() throws {
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: root) }

  /// Opens the store `1`, which contains the key `a`.
  private func withStore(_ body: (MovableStore) async throws -> Void) async throws {
    let store = MovableStore(
      try await Store(path: root + "/1", configuration: configuration),
      configuration: configuration)
    do {
      try await set("1", in: store)
      try await body(store)
    } catch {
      try await store.close()
      throw error
    }
    try await store.close()
  }

  private func set(_ text: String, in store: MovableStore) async throws {
    _ = try await store.write { try await $0.setValue(text, forKey: "a") }
  }

  private func text(in store: MovableStore) throws -> String? {
    try store.read { try $0.value(forKey: "a") }.map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("After a move, the store is at the new path with all writes, and the old path is empty")
  func move() async throws {
    try await withStore { store in
      try await store.move(to: root + "/2")
      #expect(store.path == root + "/2")
      #expect(!FileManager.default.fileExists(atPath: root + "/1"))
      #expect(try text(in: store) == "1")
      // A move to the current path does nothing, and does not replace the store.
      try await store.move(to: root + "/2", replacing: true)
      #expect(try text(in: store) == "1")
    }
    let store = try await Store(path: root + "/2", configuration: configuration)
    #expect(try store.value(forKey: "a") == Array("1".utf8))
    try await store.close()
  }

  @Test("While a move finishes, reads continue, writes wait for it, and no other move begins")
  func endOfMove() async throws {
    try await withStore { store in
      let gate = Gate()
      let path = root + "/2"
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await store.move(to: path) { await gate.wait() } }
        await gate.waitForArrival()
        group.addTask {
          _ = try await store.write { moved in
            #expect(moved.path == path)
            try await moved.setValue("2", forKey: "a")
          }
        }
        #expect(try text(in: store) == "1")
        await #expect(throws: MoveError.isMoving) {
          try await store.move(to: path, replacing: true)
        }
        await gate.open()
        try await group.waitForAll()
      }
      #expect(try text(in: store) == "2")
      try await store.move(to: root + "/3")
      #expect(try text(in: store) == "2")
    }
  }

  @Test("If the new place cannot be recorded, the store stays at its old path, and writes continue")
  func unrecordedMove() async throws {
    struct Failure: Error {}
    try await withStore { store in
      await #expect(throws: Failure.self) {
        try await store.move(to: root + "/2") { throw Failure() }
      }
      #expect(store.path == root + "/1")
      #expect(!FileManager.default.fileExists(atPath: root + "/2"))
      try await set("2", in: store)
      #expect(try text(in: store) == "2")
    }
  }

  @Test("Files at the new path are removed only on request")
  func inTheWay() async throws {
    let other = try await Store(path: root + "/2", configuration: configuration)
    try await other.setValue("other", forKey: "a")
    try await other.close()
    try await withStore { store in
      await #expect(throws: StoreError.self) { try await store.move(to: root + "/2") }
      #expect(store.path == root + "/1")
      try await set("2", in: store)
      try await store.move(to: root + "/2", replacing: true)
      #expect(try text(in: store) == "2")
    }
  }

  @Test("A move to another spelling of the current path does nothing, and removes nothing")
  func otherSpellings() async throws {
    let link = root + "/link"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: root)
    try await withStore { store in
      for path in ["/1/", "/1/.", "/./1", "//1", "/1/../1", "/link/1", "/link/1/"] {
        try await store.move(to: root + path, replacing: true)
        #expect(store.path == root + "/1")
        #expect(try text(in: store) == "1", "\(path)")
      }
      try await set("2", in: store)
      try await store.move(to: root + "/2")
      #expect(try text(in: store) == "2")
    }
  }

  @Test("A move into the store's directory, or to a directory above it, is refused")
  func overlappingPaths() async throws {
    try await withStore { store in
      for path in ["", "/", "/1/below", "/1/below/deep"] {
        await #expect(throws: MoveError.pathsOverlap, "\(path)") {
          try await store.move(to: root + path, replacing: true)
        }
      }
      try await set("2", in: store)
      #expect(try text(in: store) == "2")
    }
  }

  @Test("If the old directory cannot be removed, the store has moved, and the call says so")
  func remains() async throws {
    try await withStore { store in
      let remains = try await store.move(to: root + "/2") {
        try FileManager.default.moveItem(atPath: root + "/1", toPath: root + "/elsewhere")
      }
      #expect(remains?.path == root + "/1")
      #expect(store.path == root + "/2")
      try await set("2", in: store)
      #expect(try text(in: store) == "2")
      #expect(try await store.move(to: root + "/3") == nil)
    }
  }

  @Test("If the new place may be recorded, both directories stay, and writes fail")
  func uncertainMove() async throws {
    // A failure of the system, as the store would report it.
    var cause: StoreError?
    do { _ = try await Store(path: root + "/absent/1") } catch StoreError.system(let failure) {
      cause = .durabilityUnknown(cause: failure)
    }
    let error = try #require(cause)
    try await withStore { (store) async throws in
      await #expect(throws: MoveIsUncertain.self) {
        try await store.move(to: root + "/2") { throw error }
      }
      #expect(try text(in: store) == "1")
      await #expect(throws: MoveIsUncertain.self) { try await set("2", in: store) }
      await #expect(throws: MoveIsUncertain.self) { try await store.move(to: root + "/3") }
    }
    for path in ["/1", "/2"] {
      let store = try await Store(path: root + path, configuration: configuration)
      #expect(try store.value(forKey: "a") == Array("1".utf8))
      try await store.close()
    }
  }

  /// Waits until writes wait for a move.
  private func pause(of store: MovableStore) async throws {
    while true {
      let hasWritten = Flag()
      Task.detached {
        try await store.write { _ in }
        hasWritten.set()
      }
      try await Task.sleep(for: .milliseconds(100))
      if !hasWritten.isSet { return }
    }
  }

  @Test("A write within a write does not wait for a move")
  func innerWrites() async throws {
    try await withStore { store in
      let path = root + "/2"
      _ = try await store.write { outer in
        let move = Task.detached { try await store.move(to: path) }
        try await pause(of: store)
        try await store.write { inner in
          #expect(inner === outer)
          try await inner.setValue("2", forKey: "a")
        }
        return move
      }.value
      #expect(store.path == path)
      #expect(try text(in: store) == "2")
    }
  }

  @Test("A move within a write is refused, because it would wait for itself")
  func innerMove() async throws {
    try await withStore { store in
      await #expect(throws: MoveError.isWithinWrite) {
        try await store.write { _ in try await store.move(to: root + "/2") }
      }
    }
  }

  @Test("A task that outlives the write that created it waits for a move")
  func outlivingTask() async throws {
    try await withStore { store in
      let (gate, hasWritten) = (Gate(), Flag())
      let path = root + "/2"
      let task = try await store.write { _ in
        Task {
          await gate.wait()
          try await store.write { moved in
            #expect(moved.path == path)
            hasWritten.set()
          }
        }
      }
      try await store.move(to: path) {
        await gate.open()
        try await Task.sleep(for: .milliseconds(200))
        #expect(!hasWritten.isSet)
      }
      try await task.value
    }
  }
}

/// Tells all tasks that an event has happened.
private final class Flag: Sendable {
  private let value = Atomic(false)
  var isSet: Bool { value.load(ordering: .acquiring) }
  func set() { value.store(true, ordering: .releasing) }
}

/// Blocks a move until the gate is opened, and reports when the move has arrived.
private actor Gate {
  private var isOpen = false
  private var hasArrived = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  func wait() async {
    hasArrived = true
    resume()
    while !isOpen { await withCheckedContinuation { waiting.append($0) } }
  }

  func waitForArrival() async {
    while !hasArrived { await withCheckedContinuation { waiting.append($0) } }
  }

  func open() {
    isOpen = true
    resume()
  }

  private func resume() {
    for continuation in waiting { continuation.resume() }
    waiting = []
  }
}
