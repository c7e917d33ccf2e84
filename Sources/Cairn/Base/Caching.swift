public import CairnStore

/// A cache: the common interface of the cache in memory and the one on disk.
///
/// Generic code over it works with either. `Failure` is what a call can throw: `Never` for a cache
/// in memory, whose calls then need no `try`. A call that runs a closure also throws what the
/// closure throws.
///
///     func warm<Cache: Caching<String, [UInt8]>>(_ cache: Cache) throws(Cache.Failure) { … }
///
/// An expired value counts as absent; only `lookUp` distinguishes the two. All requirements are
/// safe to call from any thread, and each takes effect at one moment.
public protocol Caching<Key, Value>: Sendable {
  /// The type of keys.
  associatedtype Key: Sendable
  /// The type of values.
  associatedtype Value: Sendable
  /// The error of a failed call.
  associatedtype Failure: Error = Never

  /// The number of keys that a read would find.
  func count() throws(Failure) -> Int

  /// The value of a key, or `nil` if the key has none or it has expired. Counts as an access.
  func value(forKey key: Key) throws(Failure) -> Value?

  /// The value of a key, or whether it has expired if there is none. Counts as an access.
  func lookUp(_ key: Key) throws(Failure) -> LookupResult<Value>

  /// The value of a key, like `value(forKey:)`. Does not count as an access: changes neither the
  /// access order, nor an idle limit, nor the counts of hits and misses.
  func peekValue(forKey key: Key) throws(Failure) -> Value?

  /// The value of a key with everything the cache knows about it. Counts as an access.
  func entry(forKey key: Key) throws(Failure) -> CacheEntry<Key, Value>?

  /// Information about a key, without its value. Does not count as an access.
  func info(forKey key: Key) throws(Failure) -> CacheEntryInfo?

  /// Whether a read of the key would find a value. Does not count as an access.
  func contains(_ key: Key) throws(Failure) -> Bool

  /// The keys that a read would find. Does not count as an access.
  func keys() throws(Failure) -> [Key]

  /// Calls `body` with each entry, until it returns `.stop`. Does not count as an access.
  ///
  /// - Returns: the number of entries skipped because they could not be decoded.
  @discardableResult
  func forEachEntry(_ body: (CacheEntry<Key, Value>) throws -> Visit) throws -> Int

  /// Sets the value of a key. No later read finds an older one, even if the limits of the cache
  /// leave no room for this one.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - key: the key.
  ///   - options: an option that is `nil` is the configuration's; without a cost, the cache
  ///     computes one.
  /// - Returns: the entry's version.
  @discardableResult
  func setValue(
    _ value: Value, forKey key: Key, options: EntryOptions
  ) throws(Failure) -> UInt64

  /// Sets the value of a key and returns the previous one; `nil` if there was none or it had
  /// expired. When several callers write a key at once, each gets the value that its own write
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
  ///   - options: an option that is `nil` keeps the entry's; for a new entry, the configuration's
  ///     applies.
  ///   - change: makes the new value from the old one, or from `nil` if there is none. Returning
  ///     `nil` removes it. May run more than once.
  /// - Returns: the new value and its version; `nil` if there is none now.
  /// - Throws: what `change` throws: nothing was written.
  @discardableResult
  func update(
    forKey key: Key, options: EntryOptions, _ change: (_ value: Value?) throws -> Value?
  ) throws -> (value: Value, version: UInt64)?

  /// Sets the value of a key if its version is the expected one, as returned by `info(forKey:)` and
  /// `entry(forKey:)`; `nil`: the key must have no value.
  ///
  /// - Returns: the new version, or the one found instead.
  func compareAndSet(
    _ value: Value, forKey key: Key, expecting version: UInt64?, options: EntryOptions
  ) throws(Failure) -> CompareAndSetResult

  /// Removes the value of a key if its version is the expected one.
  ///
  /// - Returns: whether the version matched and the value is removed.
  func compareAndRemove(forKey key: Key, expecting version: UInt64) throws(Failure) -> Bool

  /// Extends the life of a value to `lifetime` from now, unless it ends later anyway. Not an
  /// access.
  ///
  /// - Returns: whether the key has a value.
  @discardableResult
  func extendLifetime(forKey key: Key, to lifetime: Duration) throws(Failure) -> Bool

  /// Removes the value of a key.
  ///
  /// - Returns: whether there was one.
  @discardableResult
  func removeValue(forKey key: Key) throws(Failure) -> Bool

  /// Removes the value of a key and returns it; `nil` if there was none or it had expired. When
  /// several callers take it at once, one gets it.
  func takeValue(forKey key: Key) throws(Failure) -> Value?

  /// Removes every entry for which `shouldRemove` returns true. An entry that was rewritten after
  /// the closure saw it stays.
  ///
  /// - Throws: what `shouldRemove` throws: nothing was removed.
  @discardableResult
  func remove(
    where shouldRemove: (_ key: Key, _ info: CacheEntryInfo) throws -> Bool
  ) throws -> RemovalSummary

  /// Removes everything.
  func removeAll() throws(Failure)

  /// The values of many keys, in the order of the keys; `nil` for each that has none.
  func values(forKeys keys: some Collection<Key>) throws(Failure) -> [Value?]

  /// Sets the values of many keys. If a key comes twice, the later value counts.
  func setValues(_ pairs: some Sequence<(key: Key, value: Value)>) throws(Failure)

  /// Removes the values of many keys.
  ///
  /// - Returns: the number removed.
  @discardableResult
  func removeValues(forKeys keys: some Sequence<Key>) throws(Failure) -> Int

  /// Calls `body` with everything that happens to the cache from now on, until the observation is
  /// cancelled.
  @discardableResult
  func observe(
    _ body: @escaping @Sendable (_ event: CacheEvent<Key>) -> Void
  ) -> CacheObservation

  /// A stream of everything that happens to the cache from now on.
  ///
  /// - Parameter limit: the maximum number of events buffered for the reader; the newest stay.
  func events(bufferingNewest limit: Int) -> AsyncStream<CacheEvent<Key>>

  // The async forms. A cache in memory, where nothing waits, needs no others.

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

  /// Extends the life of a value to `lifetime` from now, unless it ends later anyway.
  @discardableResult
  nonisolated(nonsending) func extendLifetime(
    forKey key: Key, to lifetime: Duration
  ) async throws(Failure) -> Bool

  /// Removes the value of a key.
  @discardableResult
  nonisolated(nonsending) func removeValue(forKey key: Key) async throws(Failure) -> Bool

  /// Removes the value of a key and returns it.
  nonisolated(nonsending) func takeValue(forKey key: Key) async throws(Failure) -> Value?

  /// Removes every entry for which `shouldRemove` returns true.
  @discardableResult
  nonisolated(nonsending) func remove(
    where shouldRemove: @escaping @Sendable (_ key: Key, _ info: CacheEntryInfo) throws -> Bool
  ) async throws -> RemovalSummary

  /// Removes everything.
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
  /// The values of many keys, in the order of the keys; `nil` for each that has none. Each is a
  /// separate read.
  ///
  /// - Throws: see `value(forKey:)`; the first key whose read fails ends the call.
  /// - Complexity: that of a read for each key.
  @inlinable
  public func values(forKeys keys: some Collection<Key>) throws(Failure) -> [Value?] {
    var values: [Value?] = []
    values.reserveCapacity(keys.count)
    for key in keys { values.append(try value(forKey: key)) }
    return values
  }

  /// Sets the values of many keys, each as a separate write. If a key comes twice, the later value
  /// counts.
  ///
  /// - Throws: at the first write that fails; earlier writes stay.
  @inlinable
  public func setValues(_ pairs: some Sequence<(key: Key, value: Value)>) throws(Failure) {
    for (key, value) in pairs { try setValue(value, forKey: key, options: .standard) }
  }

  /// Removes the values of many keys, each as a separate write.
  ///
  /// - Returns: the number removed.
  /// - Throws: at the first removal that fails; earlier removals stay.
  @inlinable
  @discardableResult
  public func removeValues(forKeys keys: some Sequence<Key>) throws(Failure) -> Int {
    var count = 0
    for key in keys where try removeValue(forKey: key) { count += 1 }
    return count
  }
}
