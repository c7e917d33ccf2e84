public import CairnStore

/// Typed access to the values of a ``/CairnStore/Store`` whose keys begin with a prefix.
///
///     let users = store.view(of: User.self, prefix: "user/")
///     try users.setValue(user, forKey: "1")  // "user/1" in the store
///
/// Several views, of several types, can share one open store. A view costs almost nothing, so make
/// one wherever you need it. Writes through a view are as durable as the store's own. Values have
/// the same form as in a ``DiskCache``.
public struct StoreView<Value: Sendable>: Sendable {
  /// The store that holds the values.
  package let store: Store
  /// The prefix of the view's keys in the store.
  package let prefix: [UInt8]
  /// Encodes and decodes values.
  package let coder: ValueCoder<Value>

  /// The value of a key, or `nil` if the key has no unexpired value. Counts as an access.
  ///
  /// - Throws: `undecodable`; otherwise see `Store.value(forKey:)`.
  public func value(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> Value? {
    try found(fullKey(key))?.value
  }

  /// The value of a key, with its metadata and all information about it. Counts as an access.
  ///
  /// - Throws: see `value(forKey:)`.
  public func entry(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> Entry<[UInt8], Value>? {
    try found(fullKey(key))
  }

  /// Sets the value of a key.
  ///
  /// - Parameters:
  ///   - value: the value to encode.
  ///   - key: the key without the prefix. May be empty if the view has a prefix.
  ///   - lifetime: how long the entry lives. `nil` means that of the options, or the configured one.
  ///   - options: cost, lifetime, idle limit and metadata.
  ///   - durability: `nil` for the store's class.
  /// - Returns: the entry's version.
  /// - Throws: `unencodable`; otherwise see `Store.setValue`.
  @discardableResult
  public func setValue(
    _ value: Value, forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil
  ) throws(StoreError) -> UInt64 {
    let (key, value, options) = (fullKey(key), try encoded(value), tagged(options.with(lifetime)))
    return try store.setValue(value, forKey: key, options: options, durability: durability)
  }

  /// Sets the value of a key, like the synchronous form, but blocks no thread.
  @discardableResult
  public nonisolated(nonsending) func setValue(
    _ value: Value, forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil
  ) async throws(StoreError) -> UInt64 {
    let (key, value, options) = (fullKey(key), try encoded(value), tagged(options.with(lifetime)))
    return try await store.setValue(value, forKey: key, options: options, durability: durability)
  }

  /// Removes the value of a key.
  ///
  /// - Returns: whether the key had a value.
  /// - Throws: see `Store.removeValue`.
  @discardableResult
  public func removeValue(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, durability: Durability? = nil
  ) throws(StoreError) -> Bool {
    let key = fullKey(key)
    return try store.removeValue(forKey: key, durability: durability)
  }

  /// Removes the value of a key, like the synchronous form, but blocks no thread.
  @discardableResult
  public nonisolated(nonsending) func removeValue(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, durability: Durability? = nil
  ) async throws(StoreError) -> Bool {
    let key = fullKey(key)
    return try await store.removeValue(forKey: key, durability: durability)
  }

  /// Changes the value of a key, without losing concurrent changes. `change` runs with no lock
  /// held. It runs again if another caller has written the key in the meantime, so it must have no
  /// side effects, and must not write this key: the call would never end.
  ///
  /// - Parameters:
  ///   - key: the key without the prefix.
  ///   - lifetime: how long the entry lives from now. `nil` means that of the options.
  ///   - options: if an option is `nil`, an existing entry keeps its own, and a new entry gets the
  ///     configured one.
  ///   - durability: `nil` for the store's class.
  ///   - change: makes the new value from the current value, or from `nil` if the key has none.
  ///     Returning `nil` removes the value.
  /// - Returns: the new value and its version, or `nil` if the key now has no value.
  /// - Throws: any error of `change`, unchanged. Otherwise a ``/CairnStore/StoreError``: see
  ///   `value(forKey:)` and `setValue`.
  @discardableResult
  public func update(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil,
    _ change: (Value?) throws -> Value?
  ) throws -> (value: Value, version: UInt64)? {
    var value: Value?
    let updated = try store.updateEntry(forKey: fullKey(key).rawSpan, durability: durability) {
      try update($0, to: &value, options.with(lifetime), change)
    }
    return value.flatMap { value in updated.map { (value, $0.version) } }
  }

  /// Changes the value of a key, like the synchronous form, but blocks no thread. `change` runs in
  /// the caller's isolation.
  @discardableResult
  public nonisolated(nonsending) func update(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil,
    _ change: (Value?) throws -> Value?
  ) async throws -> (value: Value, version: UInt64)? {
    let key = fullKey(key)
    var value: Value?
    let updated = try await store.updateEntry(forKey: key, durability: durability) {
      try update($0, to: &value, options.with(lifetime), change)
    }
    return value.flatMap { value in updated.map { (value, $0.version) } }
  }

  private func update(
    _ entry: ByteEntry?, to value: inout Value?, _ options: EntryOptions,
    _ change: (Value?) throws -> Value?
  ) throws -> (value: [UInt8], options: EntryOptions)? {
    let old = try entry.map { (entry) throws(StoreError) in try decoded(entry) }
    value = try change(old?.value)
    guard let value else { return nil }
    return (try encoded(value), tagged(options.keeping(old), with: old?.tags ?? []))
  }

  /// Whether the key has a value. Does not count as an access. See `Store.contains`.
  public func contains(
    _ key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> Bool {
    try store.contains(fullKey(key))
  }

  /// Information about a key, without its value. Does not count as an access. See `Store.info`.
  public func info(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> EntryInfo? {
    try store.info(forKey: fullKey(key))
  }

  /// Removes the value of a key and returns it. If several callers take a value at once, only one
  /// gets it.
  ///
  /// - Returns: the value, or `nil` if the key had no unexpired value. Nothing is then written.
  /// - Throws: see `value(forKey:)` and `removeValue`. Nothing was removed, except with
  ///   `durabilityUnknown`.
  public func takeValue(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, durability: Durability? = nil
  ) throws(StoreError) -> Value? {
    let key = fullKey(key)
    while let entry = try found(key) {
      let isTaken = try store.compareAndRemove(
        forKey: key, expecting: entry.version, durability: durability)
      if isTaken { return entry.value }
    }
    return nil
  }

  /// Removes the value of a key and returns it, like the synchronous form, but blocks no thread.
  public nonisolated(nonsending) func takeValue(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, durability: Durability? = nil
  ) async throws(StoreError) -> Value? {
    let key = fullKey(key)
    while let entry = try found(key) {
      let isTaken = try await store.compareAndRemove(
        forKey: key, expecting: entry.version, durability: durability)
      if isTaken { return entry.value }
    }
    return nil
  }

  /// Makes a value's lifetime longer or shorter. See `Store.setLifetime`.
  ///
  /// - Returns: whether the key had a value.
  @discardableResult
  public func setLifetime(
    _ lifetime: Lifetime, forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    durability: Durability? = nil
  ) throws(StoreError) -> Bool {
    try store.setLifetime(lifetime, forKey: fullKey(key), durability: durability)
  }

  /// Makes a value's lifetime longer or shorter, like the synchronous form, but blocks no thread.
  @discardableResult
  public nonisolated(nonsending) func setLifetime(
    _ lifetime: Lifetime, forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    durability: Durability? = nil
  ) async throws(StoreError) -> Bool {
    let key = fullKey(key)
    return try await store.setLifetime(lifetime, forKey: key, durability: durability)
  }

  // MARK: In a batch

  /// The value of a key in a batch of the store: what the batch has written, or else what the store
  /// has.
  ///
  ///     try store.write { batch in
  ///       let balance = try accounts.value(forKey: "Ann", in: &batch) ?? 0
  ///       try accounts.setValue(balance + 10, forKey: "Ann", in: &batch)
  ///     }
  ///
  /// - Precondition: it is a batch of the view's store.
  /// - Throws: see `value(forKey:)` and `Batch.value(forKey:)`.
  public func value(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, in batch: inout Batch
  ) throws(StoreError) -> Value? {
    let key = fullKey(key, in: batch)
    return try batch.entry(forKey: key).map { (entry) throws(StoreError) in try decoded(entry).value
    }
  }

  /// Sets the value of a key in a batch of the store.
  ///
  /// - Throws: `unencodable`; otherwise see `Batch.setValue`.
  public func setValue(
    _ value: Value, forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, in batch: inout Batch
  ) throws(StoreError) {
    let key = fullKey(key, in: batch)
    try batch.setValue(try encoded(value), forKey: key, options: tagged(options.with(lifetime)))
  }

  /// Removes the value of a key in a batch of the store, if it has one.
  public func removeValue(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, in batch: inout Batch
  ) throws(StoreError) {
    try batch.removeValue(forKey: fullKey(key, in: batch))
  }

  // MARK: Iterating

  /// The keys of the view, without the prefix, in no particular order. See `Store.keys(prefix:)`.
  public func keys() throws(StoreError) -> [[UInt8]] {
    try store.keys(prefix: prefix).map { Array($0.dropFirst(prefix.count)) }
  }

  /// Calls `body` with each entry, whose key is without the prefix, in no particular order, until
  /// `body` returns `.stop`. The call may or may not see concurrent writes. `body` runs with no
  /// lock held and may use the store.
  ///
  /// - Throws: any error of `body`, unchanged. `undecodable` at the first
  ///   value that is not of the view's type. Otherwise see `Store.forEachEntry`.
  /// - Complexity: O(keys of the store + bytes of the view).
  public func forEachEntry(_ body: (Entry<[UInt8], Value>) throws -> Visit) throws {
    try store.forEachEntry(prefix: prefix) { entry in try body(decoded(entry)) }
  }

  private func fullKey(_ key: borrowing some ByteSource & ~Copyable & ~Escapable) -> [UInt8] {
    key.withBytes { prefix + [UInt8](copying: $0) }
  }

  private func fullKey(
    _ key: borrowing some ByteSource & ~Copyable & ~Escapable, in batch: borrowing Batch
  ) -> [UInt8] {
    precondition(batch.store === store, "a batch of another store")
    return fullKey(key)
  }

  /// The options with metadata that say which coder encoded the value.
  ///
  /// - Parameter tags: the tags that a cache gave the entry.
  private func tagged(_ options: EntryOptions, with tags: [String] = []) -> EntryOptions {
    var options = options
    options.metadata =
      CacheMetadata(
        tag: coder.tag, tags: tags.map { Array($0.utf8) }, rest: options.metadata ?? []
      ).encoded
    return options
  }

  private func encoded(_ value: Value) throws(StoreError) -> [UInt8] {
    var encoded: [UInt8] = []
    try coder.withBytes(value) { (bytes) throws(StoreError) in encoded = [UInt8](copying: bytes) }
    return encoded
  }

  private func found(_ key: [UInt8]) throws(StoreError) -> Entry<[UInt8], Value>? {
    guard let entry = try store.entry(forKey: key) else { return nil }
    return try decoded(entry)
  }

  private func decoded(_ entry: ByteEntry) throws(StoreError) -> Entry<[UInt8], Value> {
    let metadata: CacheMetadata
    do throws(CodingFailure) {
      metadata = try CacheMetadata(decoding: entry.metadata.rawSpan, wantsRest: true)
    } catch { throw .undecodable(error, version: entry.version) }
    guard metadata.tag == coder.tag else {
      throw .otherTag(metadata.tag, coder.tag, version: entry.version)
    }
    let value: Value
    do { value = try coder.decode(entry.value.rawSpan) } catch {
      throw .undecodable(error, version: entry.version)
    }
    return Entry(
      key: Array(entry.key.dropFirst(prefix.count)), value: value, metadata: metadata.rest,
      tags: metadata.tagNames, info: entry.info)
  }
}

extension Store {
  /// A view of the values of one type whose keys begin with `prefix`.
  ///
  /// - Parameters:
  ///   - type: the type of the values. `[UInt8]`, `Data` and `String` are stored unchanged, and all
  ///     other types as JSON.
  ///   - prefix: the prefix of the view's keys. Two views overlap if the prefix of one begins with
  ///     the prefix of the other.
  public func view<Value: Codable & Sendable>(
    of type: Value.Type, prefix: String = ""
  ) -> StoreView<Value> {
    view(prefix: prefix, coder: .standard)
  }

  /// A view of values with a custom coder.
  ///
  /// - Parameters:
  ///   - prefix: the prefix of the view's keys.
  ///   - coder: encodes and decodes values.
  public func view<Value>(prefix: String = "", coder: ValueCoder<Value>) -> StoreView<Value> {
    StoreView(store: self, prefix: Array(prefix.utf8), coder: coder)
  }
}
