public import CairnStore

/// A cache that loads missing values on demand. ``MemoryCache`` and ``DiskCache`` conform.
///
/// If several callers request a key at once, its value is loaded only once.
public protocol Loading<Key, Value>: Caching {
  /// The value of a key. If the key has none, loads it and keeps it with the options that the
  /// loader returns.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - policy: how fresh the value must be, and how long to wait. `nil` means the configured
  ///     policy.
  ///   - load: makes the value and its options.
  /// - Throws: any error of `load` or `value(forKey:)`; `CancellationError`;
  ///   `StoreError.circularLoad` and `loadTimedOut`.
  func value(
    forKey key: Key, policy: LoadPolicy?,
    orLoadEntry load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value

  /// The value of a key, with its age. If the policy does not allow the cached value, calls a
  /// loader that sees the old value.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - policy: how fresh the value must be, and how long to wait. `nil` means the configured
  ///     policy.
  ///   - load: makes the value, or reports that the old one is still valid or that none exists.
  /// - Returns: `nil` if this load, or an earlier one, reported that no value exists.
  /// - Throws: see `value(forKey:policy:orLoadEntry:)`.
  func loaded(
    forKey key: Key, policy: LoadPolicy?,
    orLoad load: @escaping @Sendable (_ prior: PriorValue<Value>?) async throws -> LoadResult<Value>
  ) async throws -> Loaded<Value>?
}

extension Loading {
  /// The value of a key. If the key has none, loads and keeps it.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - options: see `setValue`. A lifetime begins at the end of the load.
  ///   - policy: how fresh the value must be, and how long to wait. `nil` means the configured
  ///     policy.
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

  /// The value of a key. If the key has none, loads it and keeps it for `lifetime` from the end of
  /// the load. Otherwise like `value(forKey:options:policy:orLoad:)`.
  @inlinable
  public func value(
    forKey key: Key, lifetime: Lifetime, policy: LoadPolicy? = nil,
    orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    try await value(forKey: key, options: .lifetime(lifetime), policy: policy, orLoad: load)
  }

  /// The value of a key, under the configured policy. If the key has none, loads it and keeps it
  /// with the options that the loader returns.
  @inlinable
  public func value(
    forKey key: Key, orLoadEntry load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value {
    try await value(forKey: key, policy: nil, orLoadEntry: load)
  }
}
