public import CairnStore

/// A cache: what is common to the cache in memory and the one on disk.
///
/// Code that is generic over it works with either. `Failure` is what a call can throw: `Never`
/// for a cache in memory, whose calls are then written without `try`.
///
///     func warm<Cache: Caching<String, [UInt8]>>(_ cache: Cache) throws(Cache.Failure) { … }
///
/// A value that has expired is as one that is not there. All requirements may be called from any
/// thread.
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

  /// Whether a read of the key would find a value. Is no access.
  func contains(_ key: Key) throws(Failure) -> Bool

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

  /// Removes the value of a key.
  ///
  /// - Returns: whether there was one.
  @discardableResult
  func removeValue(forKey key: Key) throws(Failure) -> Bool

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

  // The forms that async code gets. A cache in memory, where nothing waits, has no others.

  /// Sets the value of a key.
  @discardableResult
  nonisolated(nonsending) func setValue(
    _ value: Value, forKey key: Key, options: EntryOptions
  ) async throws(Failure) -> UInt64

  /// Removes the value of a key.
  @discardableResult
  nonisolated(nonsending) func removeValue(forKey key: Key) async throws(Failure) -> Bool

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
