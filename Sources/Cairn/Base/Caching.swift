public import CairnStore

/// The calls that a program needs to use any cache, in memory or on disk. For generic code, and for
/// another cache in tests.
///
///     func warm(_ cache: some Caching<String, [UInt8]>) async throws { … }
///
/// `Failure` is the type of the errors that calls throw. It is `Never` for a cache in memory, whose
/// calls need no `try`. An expired value counts as absent. All calls are safe from any thread, and
/// each takes effect at one moment. A cache in memory never waits, so its synchronous calls satisfy
/// the async requirements.
public protocol Caching<Key, Value>: Sendable {
  /// The type of keys.
  associatedtype Key: Sendable
  /// The type of values.
  associatedtype Value: Sendable
  /// The type of error that a failed call throws.
  associatedtype Failure: Error = Never

  /// The number of keys that a read would find.
  func count() throws(Failure) -> Int

  /// The value of a key, or `nil` if the key has no unexpired value. Counts as an access.
  func value(forKey key: Key) throws(Failure) -> Value?

  /// Whether a read of the key would find a value. Does not count as an access.
  func contains(_ key: Key) throws(Failure) -> Bool

  /// Sets the value of a key. No later read finds an older value, even if the cache has no room for
  /// the new one.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - key: the key.
  ///   - lifetime: how long the entry lives. `nil` means that of the options, or the configured one.
  ///   - options: for an option that is `nil`, the configured value applies. Without a cost, the
  ///     cache computes one.
  /// - Returns: the entry's version.
  @discardableResult
  nonisolated(nonsending) func setValue(
    _ value: Value, forKey key: Key, lifetime: Lifetime?, options: EntryOptions
  ) async throws(Failure) -> UInt64

  /// Removes the value of a key.
  ///
  /// - Returns: whether the key had a value.
  @discardableResult
  nonisolated(nonsending) func removeValue(forKey key: Key) async throws(Failure) -> Bool

  /// Removes every entry.
  nonisolated(nonsending) func removeAll() async throws(Failure)

  /// The value of a key. If the key has none, loads and keeps it. If several callers request a key
  /// at once, its value is loaded only once.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - lifetime: how long the entry lives from the end of the load. `nil` means that of the
  ///     options.
  ///   - options: see `setValue`.
  ///   - policy: how fresh the value must be, and how long to wait. `nil` means the configured
  ///     policy.
  ///   - load: makes the value.
  /// - Throws: any error of `load` or `value(forKey:)`; `CancellationError`;
  ///   `StoreError.circularLoad` and `loadTimedOut`.
  func value(
    forKey key: Key, lifetime: Lifetime?, options: EntryOptions, policy: LoadPolicy?,
    orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value
}
