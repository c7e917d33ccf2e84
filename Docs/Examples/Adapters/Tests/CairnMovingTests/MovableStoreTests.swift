import Cairn
import CairnMoving
import Foundation
import Testing

@Suite("A store that moves")
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
        await #expect(throws: StoreIsMoving.self) {
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
