import Cairn
import Foundation
import Hummingbird

/// A driver for Hummingbird's persist framework, on a Cairn cache on disk. Values survive a
/// restart, and no other process is needed.
///
///     let persist = try await CairnPersistDriver.open(path: "/var/lib/example/persist")
///     let app = Application(router: router, services: [persist])
///
/// As a service of the application, the driver is closed after the server's last response. Values
/// are stored as JSON. Expired values are removed in the background.
///
/// A read takes microseconds and runs on the calling thread. A write holds no thread while it waits
/// for the disk.
public struct CairnPersistDriver: PersistDriver {
  /// The underlying cache. Use it for limits, statistics and backups, which a persist driver lacks.
  public let cache: DiskCache<String, Data>

  /// What an acknowledged write survives. Drivers on the same cache may differ in this.
  public var durability: Durability

  /// Creates a driver on an open cache.
  public init(cache: DiskCache<String, Data>, durability: Durability = .durable) {
    self.cache = cache
    self.durability = durability
  }

  /// Opens the cache at a path, or creates it. The cache has no limits: it keeps each value until
  /// it expires or is removed.
  ///
  /// - Parameters:
  ///   - path: a directory.
  ///   - durability: what an acknowledged write survives.
  ///   - log: receives reports of problems that no call throws.
  public static func open(
    path: String, durability: Durability = .durable, log: DiagnosticLog = .standardError
  ) async throws -> CairnPersistDriver {
    var configuration = DiskCacheConfiguration()
    configuration.store.log = log
    return CairnPersistDriver(
      cache: try await .open(.path(path), configuration: configuration), durability: durability)
  }

  /// A driver on the same cache whose writes have another durability.
  public func writing(_ durability: Durability) -> CairnPersistDriver {
    CairnPersistDriver(cache: cache, durability: durability)
  }

  // MARK: Hummingbird's PersistDriver

  /// Sets the value of a key that has none. If several callers try at once, one succeeds.
  ///
  /// - Throws: `PersistError.duplicate` if the key has a value.
  public func create(
    key: String, value: some Codable & Sendable, expires: Duration?
  ) async throws {
    let result = try await cache.compareAndSet(
      JSONEncoder().encode(value), forKey: key, expecting: nil,
      lifetime: expires.map { .after($0) }, durability: durability)
    if case .mismatch = result { throw PersistError.duplicate }
  }

  /// Sets the value of a key. If `expires` is `nil`, an existing value keeps its expiry.
  public func set(key: String, value: some Codable & Sendable, expires: Duration?) async throws {
    let data = try JSONEncoder().encode(value)
    try await cache.update(
      forKey: key, lifetime: expires.map { .after($0) }, durability: durability
    ) { _ in data }
  }

  /// The value of a key, or `nil` if there is none or it has expired.
  ///
  /// - Throws: `PersistError.invalidConversion` if the value has another type.
  public func get<Object: Codable & Sendable>(
    key: String, as type: Object.Type
  ) async throws -> Object? {
    try cache.value(forKey: key).map { try Self.decode($0) }
  }

  /// Like `get`, but also returns the rest of the value's lifetime.
  public func getWithTTL<Object: Codable & Sendable>(
    key: String, as type: Object.Type
  ) async throws -> (object: Object, ttl: Duration?)? {
    try cache.entry(forKey: key).map { (try Self.decode($0.value), timeToLive(of: $0)) }
  }

  /// Removes the value of a key, if there is one.
  public func remove(key: String) async throws {
    try await cache.removeValue(forKey: key, durability: durability)
  }

  /// Closes the cache.
  public func shutdown() async throws {
    try await cache.close()
  }

  // MARK: Beyond PersistDriver

  /// Changes the value of a key atomically: no concurrent change is lost.
  ///
  ///     let count = try await persist.update(key: "visits", as: Int.self) { ($0 ?? 0) + 1 }
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - type: the type of the value.
  ///   - expires: the new lifetime; `nil` keeps the current expiry.
  ///   - change: returns the new value for the old one, or for `nil` if there is none. Called again
  ///     if another caller wrote first.
  /// - Returns: the new value.
  /// - Throws: the errors of `change`, `get` and `set`. The value is then unchanged.
  @discardableResult
  public func update<Object: Codable & Sendable>(
    key: String, as type: Object.Type, expires: Duration? = nil,
    _ change: (Object?) throws -> Object
  ) async throws -> Object {
    let updated = try await cache.update(
      forKey: key, lifetime: expires.map { .after($0) }, durability: durability
    ) { data in
      try JSONEncoder().encode(change(data.map { try Self.decode($0) }))
    }
    // `update` returns `nil` only for a removal, which the closure never requests.
    guard let updated else { throw PersistError.invalidConversion }
    return try Self.decode(updated.value)
  }

  // MARK: Implementation

  /// The rest of an entry's lifetime, or `nil` if the entry never expires.
  private func timeToLive(of entry: Entry<String, Data>) -> Duration? {
    entry.info.expires.map { expires in
      let now = cache.configuration.store.clock.now()
      return .milliseconds(expires.millisecondsSinceEpoch - now.millisecondsSinceEpoch)
    }
  }

  private static func decode<Object: Decodable>(_ data: Data) throws -> Object {
    do { return try JSONDecoder().decode(Object.self, from: data) } catch is DecodingError {
      throw PersistError.invalidConversion
    }
  }
}
