import Cairn
import Foundation

/// A copy of a store that catches up with its source: a backup, plus the changes that a follower
/// has seen since.
package struct StoreCopy: Sendable {
  package let store: Store
  private let follower: Store
  /// The version of the last source write in the copy.
  private var version: UInt64

  package static func begin(
    of source: Store, at path: String, _ configuration: StoreConfiguration
  ) async throws -> StoreCopy {
    let report = try await source.backup(to: path)
    let follower = try await Store(
      following: source.path, freshness: .manual, configuration: configuration)
    do {
      let store = try await Store(path: path, configuration: configuration)
      return StoreCopy(store: store, follower: follower, version: report.version)
    } catch {
      try await follower.close()
      throw error
    }
  }

  /// Copies the writes, extensions and removals since the last call.
  ///
  /// - Returns: the number of changed keys.
  package mutating func catchUp() async throws -> Int {
    let (follower, last) = (follower, version)
    let (count, version) = try await store.perform { store in
      try follower.catchUp()
      let snapshot = try follower.snapshot()
      var count = 0
      try snapshot.forEachKey { key in
        let key = Array(copying: key)
        guard let info = try snapshot.info(forKey: key) else { return .next }
        // Extending a lifetime does not change the version.
        let known = try store.info(forKey: key)
        if info.version <= last, let known, known.expires == info.expires { return .next }
        guard let entry = try snapshot.entry(forKey: key) else { return .next }
        // Without an idle limit, the configured one would apply.
        let options = EntryOptions(
          cost: info.cost, lifetime: info.expires.map { .until($0) } ?? .unlimited,
          idleLimit: info.idleLimit ?? .seconds(1 << 40), metadata: entry.metadata)
        try store.setValue(entry.value, forKey: key, options: options, durability: .process)
        count += 1
        return .next
      }
      for key in try store.keys() where try !snapshot.contains(key) {
        try store.removeValue(forKey: key, durability: .process)
        count += 1
      }
      return (count, snapshot.version)
    }
    self.version = version
    return count
  }

  /// Ends the copying, and deletes one of the two stores even if closing it fails.
  package func end(removing store: Store) async throws {
    try? await follower.close()
    try? await store.close()
    try FileManager.default.removeItem(atPath: store.path)
  }

  /// Ends the copying, and keeps both directories.
  package func end() async {
    try? await follower.close()
    try? await store.close()
  }
}
