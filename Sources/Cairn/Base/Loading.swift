public import CairnStore

/// A cache that loads missing values on demand; both caches of this library conform.
///
/// However many callers ask for a key at once, it is loaded once.
public protocol Loading<Key, Value>: Caching {
  /// The value of a key; if there is none, loads it and keeps it as the load requests.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - policy: how fresh the value must be, and how long to wait for it; `nil`: the
  ///     configuration's.
  ///   - load: makes the value and its options.
  /// - Throws: what `load` throws; what `value(forKey:)` throws; `CancellationError`;
  ///   `CacheError.circularLoad` and `loadTimedOut`.
  func value(
    forKey key: Key, policy: LoadPolicy?,
    orLoadEntry load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value

  /// The value of a key with its age. If the policy allows none of the values there are, a loader
  /// that sees the old one loads a new one.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - policy: how fresh the value must be, and how long to wait for it; `nil`: the
  ///     configuration's.
  ///   - load: makes the value, or reports that the old one is still valid, or that there is none.
  /// - Returns: `nil` if the loader reports, or has reported, that there is none.
  /// - Throws: see `value(forKey:policy:orLoadEntry:)`.
  func loaded(
    forKey key: Key, policy: LoadPolicy?,
    orLoad load: @escaping @Sendable (_ prior: PriorValue<Value>?) async throws -> LoadResult<Value>
  ) async throws -> Loaded<Value>?

  /// Statistics of the loads so far.
  var loadStatistics: LoadStatistics { get }
}

extension Loading {
  /// The value of a key; if there is none, loads and keeps it.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - options: see `setValue`. A lifetime begins at the end of the load.
  ///   - policy: how fresh the value must be, and how long to wait for it; `nil`: the
  ///     configuration's.
  ///   - load: makes the value.
  /// - Throws: see `value(forKey:policy:orLoadEntry:)`.
  @inlinable
  public func value(
    forKey key: Key, options: EntryOptions = .standard, policy: LoadPolicy? = nil,
    orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    try await value(forKey: key, policy: policy) {
      Loaded(try await load(), options: options)
    }
  }

  /// The value of a key; if there is none, loads it and keeps it for `lifetime` from the end of the
  /// load. Otherwise like `value(forKey:options:policy:orLoad:)`.
  @inlinable
  public func value(
    forKey key: Key, lifetime: Lifetime, policy: LoadPolicy? = nil,
    orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    try await value(forKey: key, options: .lifetime(lifetime), policy: policy, orLoad: load)
  }

  /// The value of a key; if there is none, loads it with the configured policy and keeps it as the
  /// load requests.
  @inlinable
  public func value(
    forKey key: Key, orLoadEntry load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value {
    try await value(forKey: key, policy: nil, orLoadEntry: load)
  }
}
