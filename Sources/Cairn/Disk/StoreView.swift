public import CairnStore

/// Typed values of a ``/CairnStore/Store``: those whose keys begin with a prefix.
///
///     let users = store.view(of: User.self, prefix: "user/")
///     try users.setValue(user, forKey: "1")  // "user/1" in the store
///
/// Several views, of several types, can stand over one open store. A view keeps nothing but the store, so make one wherever
/// it is needed.
/// Its calls promise what those of the store promise. A value has the form that a ``DiskCache`` gives it.
public struct StoreView<Value: Sendable>: Sendable {
  /// Where the values are.
  public let store: Store
  /// What the store's keys begin with.
  public let prefix: [UInt8]
  /// How values become bytes.
  public let coder: ValueCoder<Value>

  /// The value of a key, or `nil` where there is none or it has expired. Counts as an access.
  ///
  /// - Throws: `store`, as `Store.value(forKey:)`; `undecodableValue`, `changedType`.
  public func value(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(CacheError) -> Value? {
    try found(fullKey(key))?.value
  }

  /// Sets the value of a key.
  ///
  /// - Parameters:
  ///   - value: what the coder makes bytes of.
  ///   - key: what follows the prefix; may be empty if there is a prefix.
  ///   - options: cost, lifetime, idle limit and metadata.
  ///   - durability: `nil`: the store's.
  /// - Returns: the entry's version.
  /// - Throws: `unencodableValue`; `store`, as `Store.setValue`.
  @discardableResult
  public func setValue(
    _ value: Value, forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    options: EntryOptions = .standard, durability: Durability? = nil
  ) throws(CacheError) -> UInt64 {
    let (key, value, options) = (fullKey(key), try encoded(value), tagged(options))
    return try storing { () throws(StoreError) in
      try store.setValue(value, forKey: key, options: options, durability: durability)
    }
  }

  /// Sets the value of a key; as the synchronous form, but no thread waits.
  @discardableResult
  public nonisolated(nonsending) func setValue(
    _ value: Value, forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    options: EntryOptions = .standard, durability: Durability? = nil
  ) async throws(CacheError) -> UInt64 {
    let (key, value, options) = (fullKey(key), try encoded(value), tagged(options))
    do throws(StoreError) {
      return try await store.setValue(value, forKey: key, options: options, durability: durability)
    } catch { throw .store(error) }
  }

  /// Removes the value of a key.
  ///
  /// - Returns: whether there was one.
  /// - Throws: `store`, as `Store.removeValue`.
  @discardableResult
  public func removeValue(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, durability: Durability? = nil
  ) throws(CacheError) -> Bool {
    let key = fullKey(key)
    return try storing { () throws(StoreError) in
      try store.removeValue(forKey: key, durability: durability)
    }
  }

  /// Removes the value of a key; as the synchronous form, but no thread waits.
  @discardableResult
  public nonisolated(nonsending) func removeValue(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, durability: Durability? = nil
  ) async throws(CacheError) -> Bool {
    let key = fullKey(key)
    do throws(StoreError) {
      return try await store.removeValue(forKey: key, durability: durability)
    } catch { throw .store(error) }
  }

  /// Changes the value of a key. `change` is called again where another write came in between, and with no lock held.
  ///
  /// - Parameters:
  ///   - key: what follows the prefix.
  ///   - durability: `nil`: the store's.
  ///   - change: given the value, or `nil`, it returns the new one, or `nil` to remove it. An entry keeps its cost, lifetime, idle
  ///     limit and metadata.
  /// - Returns: the new value.
  /// - Throws: what `change` throws, unchanged; else a ``CacheError``, as `value(forKey:)` and `setValue`.
  @discardableResult
  public func update(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, durability: Durability? = nil,
    _ change: (Value?) throws -> Value?
  ) throws -> Value? {
    let key = fullKey(key)
    while true {
      let old = try found(key)
      guard let value = try change(old?.value) else {
        guard let old else { return nil }
        let isRemoved = try storing { () throws(StoreError) in
          try store.compareAndRemove(
            forKey: key, expecting: old.entry.info.version, durability: durability)
        }
        if isRemoved { return nil }
        continue
      }
      let bytes = try encoded(value)
      let options = old.map {
        EntryOptions.standard.keeping($0.entry.info, metadata: $0.entry.metadata)
      }
      let result = try storing { () throws(StoreError) in
        try store.compareAndSet(
          bytes, forKey: key, expecting: old?.entry.info.version,
          options: options ?? tagged(.standard), durability: durability)
      }
      if case .stored = result { return value }
    }
  }

  /// Calls `body` with each key, without the prefix, and its value, until it returns `.stop`: as they were when the call began,
  /// in no particular order. It runs with no lock held and may use the store.
  ///
  /// - Throws: what `body` throws, unchanged; `undecodableValue` and `changedType` of the first value that is not one of the view;
  ///   else as `Store.forEachEntry`.
  /// - Complexity: O(keys of the store), and the bytes of the view.
  public func forEach(_ body: (_ key: [UInt8], _ value: Value) throws -> Visit) throws {
    try store.forEachEntry(prefix: prefix) { entry in
      try body(Array(entry.key.dropFirst(prefix.count)), decoded(entry))
    }
  }

  private func fullKey(_ key: borrowing some ByteSource & ~Copyable & ~Escapable) -> [UInt8] {
    key.withBytes { prefix + [UInt8](copying: $0) }
  }

  private func tagged(_ options: EntryOptions) -> EntryOptions {
    var options = options
    options.metadata = CacheMetadata(tag: coder.tag, rest: options.metadata ?? []).encoded
    return options
  }

  private func encoded(_ value: Value) throws(CacheError) -> [UInt8] {
    var encoded: [UInt8] = []
    try coder.withBytes(value) { (bytes) throws(CacheError) in encoded = [UInt8](copying: bytes) }
    return encoded
  }

  private func found(_ key: [UInt8]) throws(CacheError) -> (entry: Entry, value: Value)? {
    let entry = try storing { () throws(StoreError) in try store.entry(forKey: key) }
    guard let entry else { return nil }
    return (entry, try decoded(entry))
  }

  private func decoded(_ entry: Entry) throws(CacheError) -> Value {
    let version = entry.info.version
    do {
      let metadata = try entry.metadata.withBytes { (bytes) throws(CodingFailure) in
        try CacheMetadata(decoding: bytes, wantsRest: false)
      }
      guard metadata.tag == coder.tag else {
        throw CacheError.changedType(version: version, found: metadata.tag, expected: coder.tag)
      }
      return try entry.value.withBytes { try coder.decode($0) }
    } catch let error as CacheError { throw error } catch {
      throw .undecodable(error, version: version, in: store.path)
    }
  }

  private func storing<Result>(
    _ body: () throws(StoreError) -> Result
  ) throws(CacheError) -> Result {
    do throws(StoreError) { return try body() } catch { throw .store(error) }
  }
}

extension Store {
  /// A view of the values of one type: those whose keys begin with `prefix`.
  ///
  /// - Parameters:
  ///   - type: what the values are. `Codable` types are stored as JSON, `[UInt8]`, `Data` and `String` as they are.
  ///   - prefix: what the keys of the view begin with. Views with prefixes of their own do not meet.
  public func view<Value: Codable & Sendable>(
    of type: Value.Type, prefix: String = ""
  ) -> StoreView<Value> {
    view(prefix: prefix, coder: .standard)
  }

  /// A view of values with a coder of the caller's.
  ///
  /// - Parameters:
  ///   - prefix: what the keys of the view begin with.
  ///   - coder: how values become bytes.
  public func view<Value>(prefix: String = "", coder: ValueCoder<Value>) -> StoreView<Value> {
    StoreView(store: self, prefix: Array(prefix.utf8), coder: coder)
  }
}
