import Cairn
import CairnHummingbird
import Foundation
import Hummingbird
import Testing

@Suite("The persist driver")
final class CairnPersistDriverTests {
  private struct User: Codable, Sendable, Equatable {
    var name: String
    var visitCount: Int
  }

  private let path = NSTemporaryDirectory() + "/cairn-persist-\(UUID().uuidString)"

  deinit { try? FileManager.default.removeItem(atPath: path) }

  private func withDriver(_ body: (CairnPersistDriver) async throws -> Void) async throws {
    let persist = try await CairnPersistDriver.open(path: path)
    do { try await body(persist) } catch {
      try await persist.shutdown()
      throw error
    }
    try await persist.shutdown()
  }

  @Test("returns values that were set, and nil for keys that were not set or were removed")
  func setAndGet() async throws {
    try await withDriver { persist in
      let user = User(name: "alice", visitCount: 3)
      try await persist.set(key: "user", value: user)
      try await persist.set(key: "number", value: 5)
      #expect(try await persist.get(key: "user", as: User.self) == user)
      #expect(try await persist.get(key: "number", as: Int.self) == 5)
      #expect(try await persist.get(key: "nothing", as: Int.self) == nil)
      try await persist.remove(key: "number")
      try await persist.remove(key: "number")
      #expect(try await persist.get(key: "number", as: Int.self) == nil)
    }
  }

  @Test("refuses a value of another type")
  func conversion() async throws {
    try await withDriver { persist in
      try await persist.set(key: "user", value: User(name: "alice", visitCount: 3))
      await #expect(throws: PersistError.invalidConversion) {
        try await persist.get(key: "user", as: String.self)
      }
    }
  }

  @Test("creates a key once, even if many tasks try, and again after it has expired")
  func create() async throws {
    try await withDriver { persist in
      let winners = await withTaskGroup(of: Bool.self) { group in
        for number in 0..<50 {
          group.addTask {
            do { try await persist.create(key: "key", value: number) } catch { return false }
            return true
          }
        }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(winners == 1)
      await #expect(throws: PersistError.duplicate) {
        try await persist.create(key: "key", value: 0)
      }
      try await persist.set(key: "key", value: 0, expires: .zero)
      try await persist.create(key: "key", value: 1)
      #expect(try await persist.get(key: "key", as: Int.self) == 1)
    }
  }

  @Test("keeps the expiry unless a new one is given")
  func expiry() async throws {
    try await withDriver { persist in
      func ttl() async throws -> Duration? {
        try await persist.getWithTTL(key: "key", as: Int.self)?.ttl
      }
      try await persist.set(key: "key", value: 0)
      #expect(try await ttl() == nil)
      try await persist.set(key: "key", value: 1, expires: .seconds(100))
      let first = try #require(try await ttl())
      #expect(first > .seconds(50) && first <= .seconds(100))
      try await persist.set(key: "key", value: 2)
      try await persist.update(key: "key", as: Int.self) { ($0 ?? 0) + 1 }
      let kept = try #require(try await ttl())
      #expect(kept > .seconds(50) && kept <= first + .milliseconds(10))
      try await persist.set(key: "key", value: 4, expires: .seconds(1000))
      #expect(try #require(try await ttl()) > .seconds(500))
      // An expired value has no expiry to keep.
      try await persist.set(key: "key", value: 5, expires: .zero)
      #expect(try await persist.get(key: "key", as: Int.self) == nil)
      try await persist.set(key: "key", value: 6)
      #expect(try await persist.get(key: "key", as: Int.self) == 6)
      #expect(try await ttl() == nil)
    }
  }

  @Test("loses no concurrent change")
  func updates() async throws {
    try await withDriver { persist in
      let counts = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<200 {
          group.addTask { try await persist.update(key: "count", as: Int.self) { ($0 ?? 0) + 1 } }
        }
        return try await group.reduce(into: Set<Int>()) { $0.insert($1) }
      }
      #expect(counts == Set(1...200))
      struct Refused: Error {}
      await #expect(throws: Refused.self) {
        try await persist.update(key: "count", as: Int.self) { _ in throw Refused() }
      }
      #expect(try await persist.get(key: "count", as: Int.self) == 200)
    }
  }

  @Test("keeps its values across a restart")
  func restart() async throws {
    try await withDriver { persist in
      try await persist.set(key: "key", value: "value", expires: .seconds(100))
      try await persist.writing(.process).set(key: "other", value: "value")
      try await persist.set(key: "gone", value: "value")
      try await persist.remove(key: "gone")
    }
    try await withDriver { persist in
      let (value, ttl) = try #require(try await persist.getWithTTL(key: "key", as: String.self))
      #expect(value == "value")
      #expect(try #require(ttl) > .seconds(50))
      #expect(try await persist.get(key: "other", as: String.self) == "value")
      #expect(try await persist.get(key: "gone", as: String.self) == nil)
    }
  }

  @Test("is closed by a shutdown, even in a cancelled task")
  func shutdown() async throws {
    let persist = try await CairnPersistDriver.open(path: path)
    let task = Task {
      try? await Task.sleep(for: .seconds(60))
      try await persist.shutdown()
    }
    task.cancel()
    try await task.value
    await #expect(throws: StoreError.closed(path: path)) {
      try await persist.set(key: "key", value: 1)
    }
    try await withDriver { _ in }
  }
}
