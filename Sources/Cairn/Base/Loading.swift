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
  ///   - cost: as with `setValue`.
  ///   - lifetime: how long the value lives, from the end of the load on.
  ///   - idleLimit: as with `setValue`.
  ///   - load: makes the value.
  /// - Throws: as `value(forKey:orLoadEntry:)`.
  @inlinable
  @_disfavoredOverload
  public func value(
    forKey key: Key, cost: Int? = nil, lifetime: Lifetime = .standard, idleLimit: Duration? = nil,
    orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    try await value(forKey: key) {
      Loaded(try await load(), cost: cost, lifetime: lifetime, idleLimit: idleLimit)
    }
  }
}
