public import CairnStore

/// A cache that makes a value when it is asked for and not there: both of this library.
///
/// However many ask for a key at the same time, it is loaded once.
public protocol Loading<Key, Value>: Caching {
  /// The value of a key; where there is none, it is loaded, and kept as the load says.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - load: makes the value, and says how it is to be kept.
  /// - Throws: what `load` throws; what `value(forKey:)` throws; `CancellationError`;
  ///   `CacheError.circularLoad`.
  func value(
    forKey key: Key, orLoadEntry load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value

  /// What was loaded so far.
  var loadStatistics: LoadStatistics { get }
}

extension Loading {
  /// The value of a key; where there is none, it is loaded, and kept.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - options: as with `setValue`. A lifetime begins with the end of the load.
  ///   - load: makes the value.
  /// - Throws: as `value(forKey:orLoadEntry:)`.
  @inlinable
  public func value(
    forKey key: Key, options: EntryOptions = .standard,
    orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    try await value(forKey: key) {
      Loaded(try await load(), options: options)
    }
  }

  /// The value of a key; where there is none, it is loaded, and kept for `lifetime` from the end of the load on. Otherwise
  /// as `value(forKey:options:orLoad:)`.
  @inlinable
  public func value(
    forKey key: Key, lifetime: Lifetime, orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    try await value(forKey: key, options: .lifetime(lifetime), orLoad: load)
  }
}
