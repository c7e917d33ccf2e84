import Cairn
import Foundation
import Synchronization

/// A copy of a store that catches up with it: a backup, and what a follower has seen since.
struct ShardCopy: Sendable {
  let store: Store
  let follower: Store
  /// The last write of the source that the copy has.
  private let version: Position

  private final class Position: Sendable {
    let value: Mutex<UInt64>
    init(_ value: UInt64) { self.value = Mutex(value) }
  }

  private init(store: Store, follower: Store, version: UInt64) {
    self.store = store
    self.follower = follower
    self.version = Position(version)
  }

  static func begin(
    of source: Store, at path: String, _ configuration: StoreConfiguration
  ) async throws -> ShardCopy {
    let report = try await source.backup(to: path)
    let follower = try Store(
      following: source.path, freshness: .manual, configuration: configuration)
    do {
      let store = try await Store(path: path, configuration: configuration)
      return ShardCopy(store: store, follower: follower, version: report.version)
    } catch {
      try await follower.close()
      throw error
    }
  }

  /// Copies what was written, extended and removed since the last time.
  ///
  /// - Returns: how many keys that were.
  @discardableResult
  func catchUp() async throws -> Int {
    try await store.perform { [self] store in
      try follower.catchUp()
      let snapshot = try follower.snapshot()
      let last = version.value.withLock { $0 }
      var count = 0
      try snapshot.forEachKey { key in
        let key = Array(copying: key)
        guard let info = try snapshot.info(forKey: key) else { return .next }
        // An extension of a lifetime is no write.
        let known = try store.info(forKey: key)
        if info.version <= last, let known, known.expires == info.expires { return .next }
        guard let entry = try snapshot.entry(forKey: key) else { return .next }
        let options = EntryOptions(
          cost: info.cost, lifetime: info.expires.map { .until($0) } ?? .unlimited,
          idleLimit: info.idleLimit, metadata: entry.metadata)
        try store.setValue(entry.value, forKey: key, options: options, durability: .process)
        count += 1
        return .next
      }
      for key in try store.keys() where try !snapshot.contains(key) {
        try store.removeValue(forKey: key, durability: .process)
        count += 1
      }
      version.value.withLock { $0 = snapshot.version }
      return count
    }
  }

  /// Closes and removes the copy.
  func abandon() async throws {
    try await follower.close()
    try await store.close()
    try FileManager.default.removeItem(atPath: store.path)
  }
}
