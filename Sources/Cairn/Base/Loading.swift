public import CairnStore

/// A cache that makes a value when it is asked for and not there: both of this library.
///
/// However many ask for a key at the same time, it is loaded once.
public protocol Loading<Key, Value>: Caching {
  /// The value of a key; where there is none, it is loaded, and kept as the load says.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - policy: how fresh the value is, and how long it is waited for; `nil`: as the configuration says.
  ///   - load: makes the value, and says how it is to be kept.
  /// - Throws: what `load` throws; what `value(forKey:)` throws; `CancellationError`;
  ///   `CacheError.circularLoad` and `loadTimedOut`.
  func value(
    forKey key: Key, policy: LoadPolicy?,
    orLoadEntry load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value

  /// The value of a key with its age; where there is none that the policy allows, it is loaded by a loader that sees the
  /// old one.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - policy: how fresh the value is, and how long it is waited for; `nil`: as the configuration says.
  ///   - load: makes the value, or says that the old one is still right, or that there is none.
  /// - Returns: `nil` where the loader says that there is none, or has said so.
  /// - Throws: as `value(forKey:policy:orLoadEntry:)`.
  func loaded(
    forKey key: Key, policy: LoadPolicy?,
    orLoad load: @escaping @Sendable (_ prior: PriorValue<Value>?) async throws -> LoadResult<Value>
  ) async throws -> Loaded<Value>?

  /// What was loaded so far.
  var loadStatistics: LoadStatistics { get }
}

extension Loading {
  /// The value of a key; where there is none, it is loaded, and kept.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - options: as with `setValue`. A lifetime begins with the end of the load.
  ///   - policy: how fresh the value is, and how long it is waited for; `nil`: as the configuration says.
  ///   - load: makes the value.
  /// - Throws: as `value(forKey:policy:orLoadEntry:)`.
  @inlinable
  public func value(
    forKey key: Key, options: EntryOptions = .standard, policy: LoadPolicy? = nil,
    orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    try await value(forKey: key, policy: policy) {
      Loaded(try await load(), options: options)
    }
  }

  /// The value of a key; where there is none, it is loaded, and kept for `lifetime` from the end of the load on. Otherwise
  /// as `value(forKey:options:policy:orLoad:)`.
  @inlinable
  public func value(
    forKey key: Key, lifetime: Lifetime, policy: LoadPolicy? = nil,
    orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    try await value(forKey: key, options: .lifetime(lifetime), policy: policy, orLoad: load)
  }

  /// The value of a key; where there is none, it is loaded, and kept as the load says, as the configuration has it.
  @inlinable
  public func value(
    forKey key: Key, orLoadEntry load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value {
    try await value(forKey: key, policy: nil, orLoadEntry: load)
  }
}
