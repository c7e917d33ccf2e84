public import CairnStore

/// A cache: what is common to the cache in memory and the one on disk.
///
/// Code that is generic over it works with either. `Failure` is what a call can throw: `Never`
/// for a cache in memory, whose calls are then written without `try`. A call that runs a closure throws what the closure
/// throws as well.
///
///     func warm<Cache: Caching<String, [UInt8]>>(_ cache: Cache) throws(Cache.Failure) { … }
///
/// A value that has expired is as one that is not there; `lookUp` alone tells the two apart. All requirements may be
/// called from any thread, and each takes effect at one moment.
public protocol Caching<Key, Value>: Sendable {
  /// What values are found by.
  associatedtype Key: Sendable
  /// What is cached.
  associatedtype Value: Sendable
  /// What a call throws that fails.
  associatedtype Failure: Error = Never

  /// How many keys a read would find.
  func count() throws(Failure) -> Int

  /// The value of a key, or `nil` where there is none or it has expired. Counts as an access.
  func value(forKey key: Key) throws(Failure) -> Value?

  /// The value of a key, and where there is none, whether it has expired. Counts as an access.
  func lookUp(_ key: Key) throws(Failure) -> LookupResult<Value>

  /// The value of a key, as `value(forKey:)`. Is no access: neither the order of use, nor an idle limit, nor the
  /// counts of hits and misses learn of it.
  func peekValue(forKey key: Key) throws(Failure) -> Value?

  /// The value of a key with everything the cache knows about it. Counts as an access.
  func entry(forKey key: Key) throws(Failure) -> CacheEntry<Key, Value>?

  /// What the cache knows about a key besides its value. Is no access.
  func info(forKey key: Key) throws(Failure) -> CacheEntryInfo?

  /// Whether a read of the key would find a value. Is no access.
  func contains(_ key: Key) throws(Failure) -> Bool

  /// The keys that a read would find. Is no access.
  func keys() throws(Failure) -> [Key]

  /// Calls `body` with each entry, until it returns `.stop`. Is no access.
  ///
  /// - Returns: how many entries were left out since they could not be decoded.
  @discardableResult
  func forEachEntry(_ body: (CacheEntry<Key, Value>) throws -> Visit) throws -> Int

  /// Sets the value of a key. No later read finds an older one, also where the limits of the cache
  /// leave no room for this one.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - key: the key.
  ///   - options: what is not given is as the cache is configured; without a cost, the cache finds one.
  /// - Returns: the entry's version.
  @discardableResult
  func setValue(
    _ value: Value, forKey key: Key, options: EntryOptions
  ) throws(Failure) -> UInt64

  /// Sets the value of a key and returns the one that it replaced; `nil` where there was none or it had expired. Of
  /// several that write a key at once, each gets the value that its own replaced.
  ///
  /// - Parameters: as `setValue`.
  @discardableResult
  func updateValue(
    _ value: Value, forKey key: Key, options: EntryOptions
  ) throws(Failure) -> Value?

  /// Changes the value of a key, so that no change is lost that others make at the same time.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - options: what is not given is as the entry has it, and for a new entry as the cache is configured.
  ///   - change: makes the new value of the old one, or of `nil` where there is none; `nil` removes it. May be called
  ///     more than once.
  /// - Returns: the new value and its version; `nil` where there is none now.
  /// - Throws: what `change` throws: nothing was written then.
  @discardableResult
  func update(
    forKey key: Key, options: EntryOptions, _ change: (_ value: Value?) throws -> Value?
  ) throws -> (value: Value, version: UInt64)?

  /// Sets the value of a key if its version is the expected one, which `info(forKey:)` and `entry(forKey:)` tell; `nil`: the
  /// key has no value.
  ///
  /// - Returns: the new version, or the one that was found instead.
  func compareAndSet(
    _ value: Value, forKey key: Key, expecting version: UInt64?, options: EntryOptions
  ) throws(Failure) -> CompareAndSetResult

  /// Removes the value of a key if its version is the expected one.
  ///
  /// - Returns: whether it was, and is removed.
  func compareAndRemove(forKey key: Key, expecting version: UInt64) throws(Failure) -> Bool

  /// Has a value live for `lifetime` from now on, if that is longer than it would otherwise. Is no access.
  ///
  /// - Returns: whether the key has a value.
  @discardableResult
  func extendLifetime(forKey key: Key, to lifetime: Duration) throws(Failure) -> Bool

  /// Removes the value of a key.
  ///
  /// - Returns: whether there was one.
  @discardableResult
  func removeValue(forKey key: Key) throws(Failure) -> Bool

  /// Removes the value of a key and returns it; `nil` where there was none or it had expired. Of several that take it
  /// at once, one gets it.
  func takeValue(forKey key: Key) throws(Failure) -> Value?

  /// Removes every entry for which `shouldRemove` returns true. An entry that was written anew since it was asked about
  /// stays.
  ///
  /// - Throws: what `shouldRemove` throws: nothing was removed then.
  @discardableResult
  func remove(
    where shouldRemove: (_ key: Key, _ info: CacheEntryInfo) throws -> Bool
  ) throws -> RemovalSummary

  /// Removes everything.
  func removeAll() throws(Failure)

  /// The values of many keys, in the order of the keys; `nil` for each that has none.
  func values(forKeys keys: some Collection<Key>) throws(Failure) -> [Value?]

  /// Sets the values of many keys. A key that comes twice has the later value then.
  func setValues(_ pairs: some Sequence<(key: Key, value: Value)>) throws(Failure)

  /// Removes the values of many keys.
  ///
  /// - Returns: how many there were.
  @discardableResult
  func removeValues(forKeys keys: some Sequence<Key>) throws(Failure) -> Int

  /// Has `body` called with everything that happens to the cache from now on, until the observation is cancelled.
  @discardableResult
  func observe(
    _ body: @escaping @Sendable (_ event: CacheEvent<Key>) -> Void
  ) -> CacheObservation

  /// What happens to the cache from now on.
  ///
  /// - Parameter limit: how many events wait at most for the reader of the stream; the newest stay.
  func events(bufferingNewest limit: Int) -> AsyncStream<CacheEvent<Key>>

  // The forms that async code gets. A cache in memory, where nothing waits, has no others.

  /// Sets the value of a key.
  @discardableResult
  nonisolated(nonsending) func setValue(
    _ value: Value, forKey key: Key, options: EntryOptions
  ) async throws(Failure) -> UInt64

  /// Sets the value of a key and returns the one that it replaced.
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

  /// Has a value live for `lifetime` from now on, if that is longer than it would otherwise.
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

// What a cache need not write itself.
extension Caching {
  /// The values of many keys, in the order of the keys; `nil` for each that has none. Each is a read of its own.
  ///
  /// - Throws: as `value(forKey:)`, at the first key whose read fails.
  /// - Complexity: that of a read, for each key.
  @inlinable
  public func values(forKeys keys: some Collection<Key>) throws(Failure) -> [Value?] {
    var values: [Value?] = []
    values.reserveCapacity(keys.count)
    for key in keys { values.append(try value(forKey: key)) }
    return values
  }

  /// Sets the values of many keys, each as a write of its own. A key that comes twice has the later value then.
  ///
  /// - Throws: at the first write that fails; those before it stand.
  @inlinable
  public func setValues(_ pairs: some Sequence<(key: Key, value: Value)>) throws(Failure) {
    for (key, value) in pairs { try setValue(value, forKey: key, options: .standard) }
  }

  /// Removes the values of many keys, each as a write of its own.
  ///
  /// - Returns: how many there were.
  /// - Throws: at the first removal that fails; what was removed by then stays so.
  @inlinable
  @discardableResult
  public func removeValues(forKeys keys: some Sequence<Key>) throws(Failure) -> Int {
    var count = 0
    for key in keys where try removeValue(forKey: key) { count += 1 }
    return count
  }
}
