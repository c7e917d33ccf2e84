public import CairnStore

extension DiskCache {
  /// Sets the value of a key, and removes what is too much then.
  ///
  /// When it returns, the limits hold, every later read finds the value, and it survives what `durability`
  /// says. Where it throws, nothing was written, but for `durabilityUnknown`. A value that memory has no room for is on
  /// disk alone. Of several that write a key at once, the one that came last to the disk stays, in both tiers.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - key: the key.
  ///   - options: what is not given is as the configuration says. The cost counts in memory and is kept beside the
  ///     value; without one it is what the cache's `costing` says, or else the value's bytes on disk. The limit on
  ///     disk counts bytes.
  ///   - durability: `nil`: the configuration's.
  /// - Returns: the entry's version.
  /// - Throws: `unencodableKey`, `unencodableValue`; `store` with what `Store.setValue` throws, among it
  ///   `invalidKey` for an empty or too long key, and `valueTooLarge`, also for one that is larger than the
  ///   byte limit by itself.
  /// - Complexity: O(key + value).
  @inlinable
  @discardableResult
  public func setValue(
    _ value: Value, forKey key: Key, options: EntryOptions = .standard, durability: Durability?
  ) throws(CacheError) -> UInt64 {
    let tier = try tierSteps(value, key, options)
    var version: UInt64 = 0
    try encode(value, forKey: key) { (bytes, value) throws(CacheError) in
      version = try write(
        value, bytes, of: key, options: options, durability: durability, tier)
    }
    return version
  }

  /// Sets the value of a key, with the configuration's durability; as `setValue(_:forKey:options:durability:)`.
  @inlinable
  @discardableResult
  public func setValue(
    _ value: Value, forKey key: Key, options: EntryOptions = .standard
  ) throws(CacheError) -> UInt64 {
    try setValue(value, forKey: key, options: options, durability: nil)
  }

  /// Sets the value of a key, which lives for `lifetime`.
  @inlinable
  @discardableResult
  public func setValue(
    _ value: Value, forKey key: Key, lifetime: Lifetime, durability: Durability? = nil
  ) throws(CacheError) -> UInt64 {
    try setValue(value, forKey: key, options: .lifetime(lifetime), durability: durability)
  }

  @usableFromInline
  func write(
    _ value: RawSpan, _ bytes: RawSpan, of key: Key, options: EntryOptions,
    durability: Durability?, _ tier: (TierStep) -> Void
  ) throws(CacheError) -> UInt64 {
    try noteWrite(bytes)
    let options = try stored(options)
    let result = try write(value, bytes, of: key, tier) {
      (store, removals: inout [RemovalEvent]) throws(StoreError) in
      try store.enter(
        value, forKey: bytes, options: options, durability: durability, removals: &removals)
    }
    guard case .stored(let version) = result else {
      preconditionFailure("nothing was expected, so nothing can differ")
    }
    return version
  }

  /// Enters a write of one value by `body`, brings memory and observers up to date, in this order, and waits for what the
  /// write waits for.
  ///
  /// - Parameters:
  ///   - tier: what memory does about it.
  ///   - showsMismatch: whether the caller is told what the key has instead.
  ///   - isRepeated: whether the store is already one that was made anew for this write.
  ///   - body: enters the write, and adds what that removed.
  func write(
    _ value: RawSpan, _ bytes: RawSpan, of key: Key, _ tier: (TierStep) -> Void,
    showsMismatch: Bool = true, isRepeated: Bool = false,
    by body: (Store, inout [RemovalEvent]) throws(StoreError) -> (
      result: CompareAndSetResult, pending: PendingWrite
    )
  ) throws(CacheError) -> CompareAndSetResult {
    var entered: Store?
    let (result, pending) = try enter(
      value, bytes, of: key, tier, showsMismatch: showsMismatch, into: &entered, by: body)
    // Another store may have replaced this one meanwhile. It does not have this write.
    do throws(StoreError) { try (entered ?? store).finish(pending) } catch {
      if case .vanished = error, !isRepeated {
        // The sync was the first to notice it.
        try recreate()
        return try write(
          value, bytes, of: key, tier, showsMismatch: showsMismatch, isRepeated: true, by: body)
      }
      if !CacheError.store(error).hasWrittenNothing { tier(.forget) }
      throw .store(error)
    }
    return result
  }

  /// Enters a write of one value by `body`, and brings memory and observers up to date, in this order.
  ///
  /// - Parameters:
  ///   - atOnce: whether nothing may be waited for. Where `body` leaves the write then, nothing has happened.
  ///   - entered: the store that it was entered into.
  @inline(__always)
  func enter(
    _ value: RawSpan, _ bytes: RawSpan, of key: Key, _ tier: (TierStep) -> Void,
    showsMismatch: Bool, atOnce: Bool = false, into entered: inout Store?,
    by body: (Store, inout [RemovalEvent]) throws(StoreError) -> (
      result: CompareAndSetResult, pending: PendingWrite
    )
  ) throws(CacheError) -> (CompareAndSetResult, PendingWrite) {
    if !atOnce { recency?.tellBeforeWrite(of: 1, bytes.byteCount + value.byteCount) }
    var removals: [RemovalEvent] = []
    // A tuple that is returned through generic code would be slow.
    var result = CompareAndSetResult.mismatch(current: nil)
    var pending = PendingWrite()
    do throws(CacheError) {
      if atOnce {
        let store = store
        entered = store
        do throws(StoreError) { (result, pending) = try body(store, &removals) } catch {
          throw .store(error)
        }
      } else {
        try storing { () throws(StoreError) in
          let store = store
          entered = store
          (result, pending) = try body(store, &removals)
        }
      }
    } catch {
      drop(removals)
      if !error.hasWrittenNothing { tier(.forget) }
      events.settle([], after: removals)
      throw error
    }
    if atOnce, pending.isLeft { return (result, pending) }
    switch result {
    case .stored(let version):
      // What the key had goes with what takes its place.
      drop(removals, but: bytes, before: version)
      tier(.publish(version: version, byteCount: value.byteCount))
      events.settle(key, bytes, version: version, after: removals)
    case .mismatch(let current):
      drop(removals)
      // Of a load that is not kept nobody is shown anything.
      if showsMismatch { tier(.show(version: current)) }
      // The limits may have been kept first.
      events.settle([], after: removals)
    }
    return (result, pending)
  }

  /// Sets the value of a key and returns the one that it replaced. Of several that write a key at once, each gets the
  /// value that its own replaced.
  ///
  /// - Parameters: as `setValue`.
  /// - Returns: the old value, as it was on disk, or `nil` where there was none or it had expired.
  /// - Throws: as `value(forKey:)`, so also where the old value is damaged, or cannot be decoded and is kept: nothing was
  ///   written then; `setValue` replaces such a value. Else as `setValue`.
  /// - Complexity: O(key + both values) for each round. Of those who write a key at once, one gets on with each.
  @discardableResult
  public func updateValue(
    _ value: Value, forKey key: Key, options: EntryOptions = .standard
  ) throws(CacheError) -> Value? {
    while true {
      let old = try versioned(key)
      let result = try compareAndSet(value, forKey: key, expecting: old?.version, options: options)
      if case .stored = result { return old?.value }
    }
  }

  /// What a write finds of a key that returns it. Counts as an access.
  func versioned(_ key: Key) throws(CacheError) -> (value: Value, version: UInt64)? {
    try fetch(key) { (record) throws(CacheError) in (try decode(record), record.version) }
  }

  /// Sets the value of a key if its version is the expected one.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - key: the key.
  ///   - version: the version that the key must have; `nil`: it must be absent or expired.
  ///   - options: as with `setValue`.
  ///   - durability: `nil`: the configuration's.
  /// - Returns: the new version, or the one that was found instead.
  /// - Throws: as `setValue`; a mismatch is no error.
  public func compareAndSet(
    _ value: Value, forKey key: Key, expecting version: UInt64?,
    options: EntryOptions = .standard, durability: Durability?
  ) throws(CacheError) -> CompareAndSetResult {
    try compareAndWrite(
      value, forKey: key, expecting: version, try stored(options),
      durability: durability)
  }

  /// Sets the value of a key if its version is the expected one, with the configuration's durability.
  public func compareAndSet(
    _ value: Value, forKey key: Key, expecting version: UInt64?,
    options: EntryOptions = .standard
  ) throws(CacheError) -> CompareAndSetResult {
    try compareAndSet(value, forKey: key, expecting: version, options: options, durability: nil)
  }

  func compareAndWrite(
    _ value: Value, forKey key: Key, expecting version: UInt64?, _ options: EntryOptions,
    durability: Durability?
  ) throws(CacheError) -> CompareAndSetResult {
    let tier = try tierSteps(value, key, options)
    var result = CompareAndSetResult.mismatch(current: nil)
    try encode(value, forKey: key) { (bytes, value) throws(CacheError) in
      try noteWrite(bytes)
      while true {
        let guarded = try guardedTags(bytes, of: version)
        result = try write(value, bytes, of: key, tier) {
          (store, removals: inout [RemovalEvent]) throws(StoreError) in
          try enter(
            value, forKey: bytes, expecting: version, guarded, options: options,
            durability: durability, in: store, removals: &removals)
        }
        if !waits(for: guarded, after: result, expecting: version) { return }
      }
    }
    return result
  }

  /// The tags of the entry that a write is to replace, by which a removal that comes in between makes the write find
  /// nothing. What a mark hides already goes.
  func guardedTags(_ key: RawSpan, of version: UInt64?) throws(CacheError) -> [[UInt8]] {
    guard let present = try settle(key), present.version == version else { return [] }
    return present.tags
  }

  /// Enters a write of one value if its version is the expected one and none of these tags was removed since.
  func enter(
    _ value: RawSpan, forKey key: RawSpan, expecting version: UInt64?, _ tags: [[UInt8]],
    options: EntryOptions, durability: Durability?, in store: Store,
    removals: inout [RemovalEvent]
  ) throws(StoreError) -> (result: CompareAndSetResult, pending: PendingWrite) {
    guard let version, !tags.isEmpty else {
      return try store.enter(
        value, forKey: key, expecting: version, options: options, durability: durability,
        removals: &removals)
    }
    return try store.enter(
      value, forKey: key, expecting: version, options: options, durability: durability,
      removals: &removals
    ) { [marks] in !marks.forbids(tags, since: version, isLoaded: false) }
  }

  /// Whether a write found the version that it expected and was kept off by a removal of one of these tags. Waits for that.
  func waits(
    for tags: [[UInt8]], after result: CompareAndSetResult, expecting version: UInt64?
  ) -> Bool {
    guard !tags.isEmpty, result == .mismatch(current: version) else { return false }
    marks.wait(for: tags)
    return true
  }

  /// Has a value live for `lifetime` from now on, if that is longer than it would otherwise: a life is
  /// never shortened. The value is not written again and keeps its version, and this does not count as an access. One
  /// without an end stays without one; an idle limit stays what it is.
  ///
  /// - Returns: whether the key has a value.
  @discardableResult
  public func extendLifetime(
    forKey key: Key, to lifetime: Duration, durability: Durability?
  ) throws(CacheError) -> Bool {
    var inMemory: TierExtension<Key, Value>?
    if let held { inMemory = TierExtension(of: try tierKey(key), to: lifetime, in: held) }
    let isFound = try keyCoder.encode(key) { (key) throws(CacheError) in
      try checkKey(key)
      try settle(key)
      return try storing { () throws(StoreError) in
        try store.extendLifetime(forKey: key, to: lifetime, durability: durability)
      }
    }
    if isFound { inMemory?.apply() } else { try noteShown(nil, of: key) }
    return isFound
  }

  /// Has a value live for `lifetime` from now on, with the configuration's durability.
  @discardableResult
  public func extendLifetime(forKey key: Key, to lifetime: Duration) throws(CacheError) -> Bool {
    try extendLifetime(forKey: key, to: lifetime, durability: nil)
  }

  /// Has the values of many keys live longer, each as `extendLifetime(forKey:to:)` has it, with one sync for
  /// all of them.
  ///
  /// - Returns: how many of the keys have a value.
  @discardableResult
  public func extendLifetimes(
    forKeys keys: some Sequence<Key>, to lifetime: Duration, durability: Durability? = nil
  ) throws(CacheError) -> Int {
    var encoded: [[UInt8]] = []
    var extensions: [(key: Key, TierExtension<Key, Value>)] = []
    for key in keys {
      encoded.append(try bytes(of: key))
      try encoded[encoded.count - 1].withBytes { (key) throws(CacheError) in
        try checkKey(key)
        try settle(key)
      }
      if let held {
        extensions.append((key, TierExtension(of: try tierKey(key), to: lifetime, in: held)))
      }
    }
    let count = try storing { () throws(StoreError) in
      try store.extendLifetimes(forKeys: encoded, to: lifetime, durability: durability)
    }
    for (_, inMemory) in extensions { inMemory.apply() }
    if count < encoded.count {
      // Which of them have no value was not told, so that each is as if its caller was shown it.
      for (key, _) in extensions where (try? info(forKey: key)) == nil {
        try noteShown(nil, of: key)
      }
    }
    return count
  }

  // MARK: Bytes

  /// Options as they go to the store.
  ///
  /// - Throws: `invalidTag`, `tooManyTags`.
  @inline(__always)
  func stored(_ options: EntryOptions) throws(CacheError) -> EntryOptions {
    var options = options
    try encodeMetadata(of: &options)
    return options
  }

  /// Makes options such as go to the store, unless they are.
  @inline(__always)
  func encodeMetadata(of options: inout EntryOptions) throws(CacheError) {
    if options.isMetadataEncoded { return }
    if options.tags == nil {
      options.setEncoded(metadata: encoded(options.metadataBytes))
    } else {
      try encodeTags(of: &options)
    }
  }

  /// Metadata as it stands on disk, with the tag.
  func encoded(_ metadata: [UInt8]) -> [UInt8] {
    metadata.isEmpty ? bareMetadata : CacheMetadata(tag: valueCoder.tag, rest: metadata).encoded
  }

  /// The bytes that tell a key from others.
  package func bytes(of key: Key) throws(CacheError) -> [UInt8] {
    try keyCoder.encode(key) { (key) throws(CacheError) in [UInt8](copying: key) }
  }

  @inlinable
  func encode(
    _ value: Value, forKey key: Key,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws(CacheError) -> Void
  ) throws(CacheError) {
    try keyCoder.withBytes(key) { (key) throws(CacheError) in
      try encode(value) { (value) throws(CacheError) in try body(key, value) }
    }
  }

  /// Calls `body` with the bytes of a value; an error of the coder names this cache.
  @inlinable
  func encode(
    _ value: Value, _ body: (RawSpan) throws(CacheError) -> Void
  ) throws(CacheError) {
    do throws(CacheError) { try valueCoder.withBytes(value, body) } catch {
      throw error.named(name)
    }
  }
}
