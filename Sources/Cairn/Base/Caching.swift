public import CairnStore

/// The calls that all caches share, in memory and on disk.
///
/// Use this protocol for generic code that works with any cache. `Failure` is the type of the
/// errors that calls throw. It is `Never` for a cache in memory, whose calls need no `try`. Calls
/// that run a closure of yours also throw the closure's errors.
///
///     func warm<Cache: Caching<String, [UInt8]>>(_ cache: Cache) throws(Cache.Failure) { … }
///
/// An expired value counts as absent, and only `lookUp` distinguishes the two. All calls are safe
/// from any thread, and each takes effect at one moment.
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

  /// The value of a key or, if it has none, whether its value has expired. Counts as an access.
  func lookUp(_ key: Key) throws(Failure) -> LookupResult<Value>

  /// The value of a key, like `value(forKey:)`. Does not count as an access: the access order, idle
  /// limits and the counts of hits and misses stay the same.
  func peekValue(forKey key: Key) throws(Failure) -> Value?

  /// The value of a key, with its metadata and all information about it. Counts as an access.
  func entry(forKey key: Key) throws(Failure) -> CacheEntry<Key, Value>?

  /// Information about a key, without its value. Does not count as an access.
  func info(forKey key: Key) throws(Failure) -> CacheEntryInfo?

  /// Whether a read of the key would find a value. Does not count as an access.
  func contains(_ key: Key) throws(Failure) -> Bool

  /// The keys that a read would find. Does not count as an access to them.
  func keys() throws(Failure) -> [Key]

  /// Calls `body` with each entry, until `body` returns `.stop`. Does not count as an access.
  ///
  /// - Returns: the number of entries skipped because they could not be decoded.
  @discardableResult
  func forEachEntry(_ body: (CacheEntry<Key, Value>) throws -> Visit) throws -> Int

  /// Sets the value of a key. No later read finds an older value, even if the cache has no room for
  /// the new one.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - key: the key.
  ///   - options: for an option that is `nil`, the configured value applies. Without a cost, the
  ///     cache computes one.
  /// - Returns: the entry's version.
  @discardableResult
  func setValue(
    _ value: Value, forKey key: Key, options: EntryOptions
  ) throws(Failure) -> UInt64

  /// Sets the value of a key and returns the previous one, or `nil` if the key had no unexpired
  /// value. If several callers write a key at once, each gets the value that its own write
  /// replaced.
  ///
  /// - Parameters: see `setValue`.
  @discardableResult
  func updateValue(
    _ value: Value, forKey key: Key, options: EntryOptions
  ) throws(Failure) -> Value?

  /// Changes the value of a key, without losing concurrent changes.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - options: if an option is `nil`, an existing entry keeps its value for the option, and a
  ///     new entry gets the configured value.
  ///   - change: makes the new value from the old value, or from `nil` if the key has none.
  ///     Returning `nil` removes the value. May run more than once.
  /// - Returns: the new value and its version, or `nil` if the key now has no value.
  /// - Throws: any error of `change`; nothing is then written.
  @discardableResult
  func update(
    forKey key: Key, options: EntryOptions, _ change: (_ value: Value?) throws -> Value?
  ) throws -> (value: Value, version: UInt64)?

  /// Sets the value of a key if its version is the expected one, as returned by `info(forKey:)` and
  /// `entry(forKey:)`. With `nil`, the key must have no value.
  ///
  /// - Returns: the new version or, on a mismatch, the current one.
  func compareAndSet(
    _ value: Value, forKey key: Key, expecting version: UInt64?, options: EntryOptions
  ) throws(Failure) -> CompareAndSetResult

  /// Removes the value of a key if its version is the expected one.
  ///
  /// - Returns: whether the version matched and the value was removed.
  func compareAndRemove(forKey key: Key, expecting version: UInt64) throws(Failure) -> Bool

  /// Extends a value's lifetime to `lifetime` from now, unless it already ends later. Does not
  /// count as an access.
  ///
  /// - Returns: whether the key has a value.
  @discardableResult
  func extendLifetime(forKey key: Key, to lifetime: Duration) throws(Failure) -> Bool

  /// Removes the value of a key.
  ///
  /// - Returns: whether the key had a value.
  @discardableResult
  func removeValue(forKey key: Key) throws(Failure) -> Bool

  /// Removes the value of a key and returns it, or `nil` if the key had no unexpired value. If
  /// several callers take a value at once, only one gets it.
  func takeValue(forKey key: Key) throws(Failure) -> Value?

  /// Removes every entry for which `shouldRemove` returns `true`. An entry that is rewritten after
  /// the closure has seen it stays.
  ///
  /// - Throws: any error of `shouldRemove`; nothing is then removed.
  @discardableResult
  func remove(
    where shouldRemove: (_ key: Key, _ info: CacheEntryInfo) throws -> Bool
  ) throws -> RemovalSummary

  /// Removes every entry.
  func removeAll() throws(Failure)

  /// The values of many keys, in the order of the keys, with `nil` for each key without a value.
  func values(forKeys keys: some Collection<Key>) throws(Failure) -> [Value?]

  /// Sets the values of many keys. If a key occurs twice, its last value counts.
  func setValues(_ pairs: some Sequence<(key: Key, value: Value)>) throws(Failure)

  /// Removes the values of many keys.
  ///
  /// - Returns: the number of removed values.
  @discardableResult
  func removeValues(forKeys keys: some Sequence<Key>) throws(Failure) -> Int

  /// Calls `body` with every later event of the cache, until the observation is cancelled.
  @discardableResult
  func observe(
    _ body: @escaping @Sendable (_ event: CacheEvent<Key>) -> Void
  ) -> CacheObservation

  /// A stream of every later event of the cache.
  ///
  /// - Parameter limit: the maximum number of events buffered for the reader. If there are more,
  ///   the oldest are dropped.
  func events(bufferingNewest limit: Int) -> AsyncStream<CacheEvent<Key>>

  // The async forms. A cache in memory never waits, so its synchronous calls satisfy them.

  /// Sets the value of a key.
  @discardableResult
  nonisolated(nonsending) func setValue(
    _ value: Value, forKey key: Key, options: EntryOptions
  ) async throws(Failure) -> UInt64

  /// Sets the value of a key and returns the previous one.
  @discardableResult
  nonisolated(nonsending) func updateValue(
    _ value: Value, forKey key: Key, options: EntryOptions
  ) async throws(Failure) -> Value?

  /// Changes the value of a key. `change` runs in the caller's isolation.
  @discardableResult
  nonisolated(nonsending) func update(
    forKey key: Key, options: EntryOptions, _ change: (_ value: Value?) throws -> Value?
  ) async throws -> (value: Value, version: UInt64)?

  /// Sets the value of a key if its version is the expected one.
  nonisolated(nonsending) func compareAndSet(
    _ value: Value, forKey key: Key, expecting version: UInt64?, options: EntryOptions
  ) async throws(Failure) -> CompareAndSetResult

  /// Removes the value of a key if its version is the expected one.
  nonisolated(nonsending) func compareAndRemove(
    forKey key: Key, expecting version: UInt64
  ) async throws(Failure) -> Bool

  /// Extends a value's lifetime to `lifetime` from now, unless it already ends later.
  @discardableResult
  nonisolated(nonsending) func extendLifetime(
    forKey key: Key, to lifetime: Duration
  ) async throws(Failure) -> Bool

  /// Removes the value of a key.
  @discardableResult
  nonisolated(nonsending) func removeValue(forKey key: Key) async throws(Failure) -> Bool

  /// Removes the value of a key and returns it.
  nonisolated(nonsending) func takeValue(forKey key: Key) async throws(Failure) -> Value?

  /// Removes every entry for which `shouldRemove` returns `true`.
  @discardableResult
  nonisolated(nonsending) func remove(
    where shouldRemove: @escaping @Sendable (_ key: Key, _ info: CacheEntryInfo) throws -> Bool
  ) async throws -> RemovalSummary

  /// Removes every entry.
  nonisolated(nonsending) func removeAll() async throws(Failure)

  /// Sets the values of many keys.
  nonisolated(nonsending) func setValues(
    _ pairs: some Sequence<(key: Key, value: Value)>
  ) async throws(Failure)

  /// Removes the values of many keys.
  @discardableResult
  nonisolated(nonsending) func removeValues(
    forKeys keys: some Sequence<Key>
  ) async throws(Failure) -> Int
}

// Default implementations.
extension Caching {
  /// The values of many keys, in the order of the keys, with `nil` for each key without a value.
  /// Reads each key separately.
  ///
  /// - Throws: see `value(forKey:)`. The first read that fails ends the call.
  /// - Complexity: the same as a read for each key.
  @inlinable
  public func values(forKeys keys: some Collection<Key>) throws(Failure) -> [Value?] {
    var values: [Value?] = []
    values.reserveCapacity(keys.count)
    for key in keys { values.append(try value(forKey: key)) }
    return values
  }

  /// Sets the values of many keys, each as a separate write. If a key occurs twice, its last value
  /// counts.
  ///
  /// - Throws: the error of the first failed write. Earlier writes stay.
  @inlinable
  public func setValues(_ pairs: some Sequence<(key: Key, value: Value)>) throws(Failure) {
    for (key, value) in pairs { try setValue(value, forKey: key, options: .standard) }
  }

  /// Removes the values of many keys, each as a separate write.
  ///
  /// - Returns: the number of removed values.
  /// - Throws: the error of the first failed removal. Earlier removals stay.
  @inlinable
  @discardableResult
  public func removeValues(forKeys keys: some Sequence<Key>) throws(Failure) -> Int {
    var count = 0
    for key in keys where try removeValue(forKey: key) { count += 1 }
    return count
  }
}
