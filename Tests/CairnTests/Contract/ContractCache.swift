import Cairn
import CairnStore

/// The calls that caches in memory and on disk share, for tests that are the same for both.
protocol ContractCache<Key, Value>: Caching, Trimming {
  func peekValue(forKey key: Key) throws(Failure) -> Value?
  func entry(forKey key: Key) throws(Failure) -> Entry<Key, Value>?
  func info(forKey key: Key) throws(Failure) -> EntryInfo?
  func keys() throws(Failure) -> [Key]
  func totalCost() throws(Failure) -> Int
  @discardableResult
  func forEachEntry(_ body: (Entry<Key, Value>) throws -> Visit) throws -> Int
  @discardableResult
  func setValue(
    _ value: Value, forKey key: Key, options: EntryOptions
  ) throws(Failure) -> UInt64
  @discardableResult
  func change(
    forKey key: Key, options: EntryOptions, _ change: (Value?) throws -> Value?
  ) throws -> (value: Value, version: UInt64)?
  func compareAndSet(
    _ value: Value, forKey key: Key, expecting version: UInt64?, options: EntryOptions
  ) throws(Failure) -> CompareAndSetResult
  func compareAndRemove(forKey key: Key, expecting version: UInt64) throws(Failure) -> Bool
  @discardableResult
  func setLifetime(_ lifetime: Lifetime, forKey key: Key) throws(Failure) -> Bool
  @discardableResult
  func removeValue(forKey key: Key) throws(Failure) -> Bool
  func takeValue(forKey key: Key) throws(Failure) -> Value?
  @discardableResult
  func remove(
    where shouldRemove: (_ key: Key, _ info: EntryInfo) throws -> Bool
  ) throws -> RemovalSummary
  func removeAll() throws(Failure)
  func values(forKeys keys: some Collection<Key>) throws(Failure) -> [Value?]
  func setValues(_ pairs: some Sequence<(key: Key, value: Value)>) throws(Failure)
  @discardableResult
  func removeValues(forKeys keys: some Sequence<Key>) throws(Failure) -> Int
  func value(
    forKey key: Key, policy: LoadPolicy?,
    orLoadEntry load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value
  func loaded(
    forKey key: Key, policy: LoadPolicy?,
    orLoad load: @escaping @Sendable (PriorValue<Value>?) async throws -> LoadResult<Value>
  ) async throws -> Loaded<Value>?
  @discardableResult
  func observe(_ body: @escaping @Sendable (CacheEvent<Key>) -> Void) -> CacheObservation
}

extension ContractCache {
  func value(
    forKey key: Key, options: EntryOptions = .standard, policy: LoadPolicy? = nil,
    orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    try await value(forKey: key, lifetime: nil, options: options, policy: policy, orLoad: load)
  }

  func value(
    forKey key: Key, lifetime: Lifetime, policy: LoadPolicy? = nil,
    orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    try await value(
      forKey: key, lifetime: lifetime, options: .standard, policy: policy, orLoad: load)
  }
}

extension ContractCache {
  @discardableResult
  func setValue(_ value: Value, forKey key: Key, lifetime: Lifetime) throws(Failure) -> UInt64 {
    try setValue(value, forKey: key, options: .lifetime(lifetime))
  }
}

extension MemoryCache: ContractCache {
  @discardableResult
  func setValue(_ value: Value, forKey key: Key, options: EntryOptions) -> UInt64 {
    setValue(value, forKey: key, lifetime: nil, options: options)
  }

  @discardableResult
  func change(
    forKey key: Key, options: EntryOptions, _ change: (Value?) throws -> Value?
  ) throws -> (value: Value, version: UInt64)? {
    try update(forKey: key, lifetime: nil, options: options, change)
  }

  func compareAndSet(
    _ value: Value, forKey key: Key, expecting version: UInt64?, options: EntryOptions
  ) -> CompareAndSetResult {
    compareAndSet(value, forKey: key, expecting: version, lifetime: nil, options: options)
  }

  func setValues(_ pairs: some Sequence<(key: Key, value: Value)>) {
    setValues(pairs, lifetime: nil)
  }
}

extension DiskCache: ContractCache {
  @discardableResult
  func setValue(
    _ value: Value, forKey key: Key, options: EntryOptions
  ) throws(StoreError) -> UInt64 {
    try setValue(value, forKey: key, lifetime: nil, options: options, durability: nil)
  }

  @discardableResult
  func change(
    forKey key: Key, options: EntryOptions, _ change: (Value?) throws -> Value?
  ) throws -> (value: Value, version: UInt64)? {
    try update(forKey: key, lifetime: nil, options: options, durability: nil, change)
  }

  func compareAndSet(
    _ value: Value, forKey key: Key, expecting version: UInt64?, options: EntryOptions
  ) throws(StoreError) -> CompareAndSetResult {
    try compareAndSet(
      value, forKey: key, expecting: version, lifetime: nil, options: options, durability: nil)
  }

  func compareAndRemove(forKey key: Key, expecting version: UInt64) throws(StoreError) -> Bool {
    try compareAndRemove(forKey: key, expecting: version, durability: nil)
  }

  @discardableResult
  func setLifetime(_ lifetime: Lifetime, forKey key: Key) throws(StoreError) -> Bool {
    try setLifetime(lifetime, forKey: key, durability: nil)
  }

  @discardableResult
  func removeValue(forKey key: Key) throws(StoreError) -> Bool {
    try removeValue(forKey: key, durability: nil)
  }

  func removeAll() throws(StoreError) { try removeAll { _ in } }

  func setValues(_ pairs: some Sequence<(key: Key, value: Value)>) throws(StoreError) {
    try setValues(pairs, durability: nil)
  }

  @discardableResult
  func removeValues(forKeys keys: some Sequence<Key>) throws(StoreError) -> Int {
    try removeValues(forKeys: keys, durability: nil)
  }
}
