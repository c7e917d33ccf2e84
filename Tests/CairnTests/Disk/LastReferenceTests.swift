import CairnStore
import Testing

@testable import Cairn

@Suite("The last reference to a cache closes it", .timeLimit(.minutes(30)))
struct LastReferenceTests {
  let scene = DiskScene()

  enum Call: CaseIterable {
    case open, set, remove, perform, load, failedLoad, trim
  }

  /// Each call runs on threads of its own, or has a task. None may hold the cache when it returns.
  @Test("After any call, the place can be opened at once", arguments: Call.allCases)
  func reopened(after call: Call) async throws {
    var configuration = DiskCacheConfiguration()
    configuration.store.segmentByteLimit = 256 << 10
    for _ in 0..<40 {
      try await use(call, configuration)
      try reopen(configuration)
    }
  }

  private func reopen(_ configuration: DiskCacheConfiguration) throws {
    try DiskCache<Int, Int>.open(.path(scene.path), configuration: configuration).close()
  }

  private func use(_ call: Call, _ configuration: DiskCacheConfiguration) async throws {
    let cache = try await DiskCache<Int, Int>.open(.path(scene.path), configuration: configuration)
    switch call {
    case .open: break
    case .set: try await cache.setValue(1, forKey: 1)
    case .remove: _ = try await cache.removeValue(forKey: 1)
    case .perform: _ = try await cache.perform { try $0.count() }
    case .load: _ = try await cache.value(forKey: .random(in: 0...Int.max)) { 5 }
    case .failedLoad: _ = try? await cache.value(forKey: 7) { throw CancellationError() }
    case .trim: try await cache.trim(.toCount(10))
    }
  }

  @Test("After any call to a store, the place can be opened at once")
  func store() async throws {
    for _ in 0..<40 {
      try await useStore()
      try reopenStore()
    }
  }

  private func reopenStore() throws { try Store(path: scene.path).close() }

  private func useStore() async throws {
    let store = try await Store(path: scene.path)
    try await store.setValue("a", forKey: "b")
    _ = try await store.removeValues(forKeys: ["b"])
  }
}
