import Cairn
import Foundation
import Hummingbird

/// Hummingbird's persist framework over a Cairn cache on disk: what is kept survives a restart, and no other
/// process is needed for it.
///
///     let persist = try await CairnPersistDriver.open(path: "/var/lib/example/persist")
///     let app = Application(router: router, services: [persist])
///
/// As a service of the application it is closed after the server has answered its last request. Values are
/// kept as JSON. What has expired is removed in the background.
///
/// A read takes microseconds and is done where it is asked for. A write waits for the disk without a thread.
public struct CairnPersistDriver: PersistDriver {
  /// What the values are kept in, for what a persist driver does not offer: limits, statistics, backups.
  public let cache: DiskCache<String, Data>

  /// What a write survives once it is acknowledged. It may differ for several drivers over one cache.
  public var durability: Durability

  /// Makes a driver over a cache that is open.
  public init(cache: DiskCache<String, Data>, durability: Durability = .durable) {
    self.cache = cache
    self.durability = durability
  }

  /// Opens the cache at a path, or makes one there. It holds all that it is given, until that expires.
  ///
  /// - Parameters:
  ///   - path: a directory.
  ///   - durability: what a write survives once it is acknowledged.
  ///   - log: where the cache reports what no call throws.
  public static func open(
    path: String, durability: Durability = .durable, log: DiagnosticLog = .standardError
  ) async throws -> CairnPersistDriver {
    var configuration = DiskCacheConfiguration.unlimited
    configuration.store.log = log
    return CairnPersistDriver(
      cache: try await .open(.path(path), configuration: configuration), durability: durability)
  }

  /// The same values, with writes of another durability.
  public func writing(_ durability: Durability) -> CairnPersistDriver {
    CairnPersistDriver(cache: cache, durability: durability)
  }

  // MARK: Hummingbird's PersistDriver

  /// Sets the value of a key that has none. Of several who try at once, one succeeds.
  ///
  /// - Throws: `PersistError.duplicate` where the key has a value.
  public func create(
    key: String, value: some Codable & Sendable, expires: Duration?
  ) async throws {
    let result = try await cache.compareAndSet(
      JSONEncoder().encode(value), forKey: key, expecting: nil,
      options: .lifetime(expires.map { .after($0) }), durability: durability)
    if case .mismatch = result { throw PersistError.duplicate }
  }

  /// Sets the value of a key. Where `expires` is `nil`, a value that is there keeps its time of expiry.
  public func set(key: String, value: some Codable & Sendable, expires: Duration?) async throws {
    let data = try JSONEncoder().encode(value)
    try await cache.update(
      forKey: key, options: .lifetime(expires.map { .after($0) }), durability: durability
    ) { _ in data }
  }

  /// The value of a key, or `nil` where there is none or it has expired.
  ///
  /// - Throws: `PersistError.invalidConversion` where it is of another type.
  public func get<Object: Codable & Sendable>(
    key: String, as type: Object.Type
  ) async throws -> Object? {
    try cache.value(forKey: key).map { try Self.decode($0) }
  }

  /// The value of a key, and how long it will live; as `get`.
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

  // MARK: More than Hummingbird asks for

  /// Changes the value of a key, so that no change is lost that another makes at the same time.
  ///
  ///     let count = try await persist.update(key: "visits", as: Int.self) { ($0 ?? 0) + 1 }
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - type: what the value is.
  ///   - expires: when the value will expire; `nil`: when it would have expired.
  ///   - change: makes the new value of the old one, which is `nil` where there is none. Called again where
  ///     somebody else was faster.
  /// - Returns: the new value.
  /// - Throws: what `change` throws; otherwise as `get` and `set`. The value is as before then.
  @discardableResult
  public func update<Object: Codable & Sendable>(
    key: String, as type: Object.Type, expires: Duration? = nil,
    _ change: (Object?) throws -> Object
  ) async throws -> Object {
    let updated = try await cache.update(
      forKey: key, options: .lifetime(expires.map { .after($0) }), durability: durability
    ) { data in
      try JSONEncoder().encode(change(data.map { try Self.decode($0) }))
    }
    // There is one: nothing was to be removed.
    guard let updated else { throw PersistError.invalidConversion }
    return try Self.decode(updated.value)
  }

  // MARK: How

  /// How long an entry will live; `nil`: for ever.
  private func timeToLive(of entry: CacheEntry<String, Data>) -> Duration? {
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
