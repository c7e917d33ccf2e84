public import CairnStore

extension DiskCache {
  /// Sets the value of a key, and evicts entries if the cache exceeds its limits.
  ///
  /// When the call returns, the cache is within its limits, every later read finds the value, and
  /// the value is as durable as its durability class promises. If the call throws, nothing was
  /// written, except with `durabilityUnknown`; memory may keep the value after `poisoned` and
  /// `vanished`, as described above. A value that does not fit in memory is only on disk.
  /// If several callers write a key at once, both tiers end up with the same value.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - key: the key.
  ///   - lifetime: how long the entry lives. `nil` means that of the options.
  ///   - options: for an option that is `nil`, the configured value applies. The cost counts in
  ///     memory only, because the limit on disk counts bytes. Without a cost, the cache computes
  ///     one; see `MemoryConfiguration.costLimit`.
  ///   - durability: `nil` for the configured class.
  /// - Returns: the entry's version.
  /// - Throws: `unencodable`, `invalidTag`; the errors of `Store.setValue`, such as `tooLarge` for
  ///   an entry that alone exceeds the byte limit.
  /// - Complexity: O(key + value).
  @inlinable
  @discardableResult
  public func setValue(
    _ value: Value, forKey key: Key, lifetime: Lifetime? = nil,
    options: EntryOptions = .standard, durability: Durability? = nil
  ) throws(StoreError) -> UInt64 {
    let start = callStart()
    let options = options.with(lifetime)
    // There are two calls, because an optional entry takes a hundred more instructions.
    if held == nil { return try write(value, key, options, durability, start) { _ in } }
    let tierKey = try tierKey(key)
    return try write(value, key, options, durability, start) {
      take($0, of: value, forKey: tierKey, options)
    }
  }

  @inlinable
  func write(
    _ value: Value, _ key: Key, _ options: EntryOptions, _ durability: Durability?,
    _ start: CallStart, _ tier: (TierStep) -> Void
  ) throws(StoreError) -> UInt64 {
    var version: UInt64 = 0
    try encode(value, forKey: key) { (bytes, value) throws(StoreError) in
      version = try write(
        value, bytes, of: key, options: options, durability: durability, start, tier)
    }
    return version
  }

  @usableFromInline
  func write(
    _ value: RawSpan, _ bytes: RawSpan, of key: Key, options: EntryOptions,
    durability: Durability?, _ start: CallStart, _ tier: (TierStep) -> Void
  ) throws(StoreError) -> UInt64 {
    defer { note(.write, since: start) }
    try noteWrite(bytes)
    let options = try stored(options)
    let result = try write(value, bytes, of: key, tier, ifWanted: { true }) {
      (removals: inout [RemovalEvent]) throws(StoreError) in
      defer { noteWritten(bytes) }
      return try store.enter(
        value, forKey: bytes, options: options, durability: durability, removals: &removals)
    }
    guard case .stored(let version) = result else {
      preconditionFailure("nothing was expected, so nothing can differ")
    }
    return version
  }

  /// Enters a write of one value by calling `body`, updates memory, calls observers, and does all
  /// the waiting that the write requires.
  ///
  /// - Parameters:
  ///   - tier: keeps the value in memory.
  ///   - isWanted: whether memory may keep the value if the disk takes no more writes.
  ///   - body: enters the write, and adds its removals.
  @inline(__always)
  func write(
    _ value: RawSpan, _ bytes: RawSpan, of key: Key, _ tier: (TierStep) -> Void,
    ifWanted isWanted: () -> Bool = { false },
    by body: (inout [RemovalEvent]) throws(StoreError) -> (
      result: CompareAndSetResult, pending: PendingWrite
    )
  ) throws(StoreError) -> CompareAndSetResult {
    let (result, pending) = try enter(value, bytes, of: key, tier, ifWanted: isWanted, by: body)
    try store.finish(pending)
    return result
  }

  /// Enters a write of one value by calling `body`, then updates memory, then calls observers.
  ///
  /// - Parameter atOnce: whether waiting is forbidden. If `body` would have to wait, it leaves the
  ///   write, and nothing has happened.
  @inline(__always)
  func enter(
    _ value: RawSpan, _ bytes: RawSpan, of key: Key, _ tier: (TierStep) -> Void,
    atOnce: Bool = false, ifWanted isWanted: () -> Bool,
    by body: (inout [RemovalEvent]) throws(StoreError) -> (
      result: CompareAndSetResult, pending: PendingWrite
    )
  ) throws(StoreError) -> (CompareAndSetResult, PendingWrite) {
    var removals: [RemovalEvent] = []
    // Returning a tuple through generic code would be slow.
    var result = CompareAndSetResult.mismatch(current: nil)
    var pending = PendingWrite()
    do throws(StoreError) {
      (result, pending) = try body(&removals)
    } catch {
      drop(removals)
      keepOnly(key, after: error, byteCount: value.byteCount, ifWanted: isWanted, tier)
      events.settle([], after: removals)
      throw error
    }
    if atOnce, pending.isLeft { return (result, pending) }
    drop(removals)
    switch result {
    case .stored(let version):
      tier(TierStep(version: version, byteCount: value.byteCount, place: pending.place))
      events.settle(
        key, bytes, version: version, replacing: pending.replaced, after: removals)
    case .mismatch:
      // Entries may have been evicted before the mismatch.
      events.settle([], after: removals)
    }
    return (result, pending)
  }

  /// The current entry, for a write that returns the old value. Counts as an access.
  ///
  /// - Parameter counts: whether to count a hit or a miss.
  func versioned(
    _ key: Key, counts: Bool = true
  ) throws(StoreError) -> (value: Value, version: UInt64)? {
    try fetch(key, counts: counts) { (record) throws(StoreError) in
      (try decode(record), record.version)
    }
  }

  /// Sets the value of a key if its version is the expected one.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - key: the key.
  ///   - version: the version that the key must have, or `nil` if the key must be absent or
  ///     expired.
  ///   - lifetime: how long the entry lives. `nil` means that of the options.
  ///   - options: see `setValue`.
  ///   - durability: `nil` for the configured class.
  /// - Returns: the new version or, on a mismatch, the current one.
  /// - Throws: see `setValue`. A mismatch does not throw.
  public func compareAndSet(
    _ value: Value, forKey key: Key, expecting version: UInt64?,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil
  ) throws(StoreError) -> CompareAndSetResult {
    try compareAndWrite(
      value, forKey: key, expecting: version, try stored(options.with(lifetime)),
      durability: durability)
  }

  func compareAndWrite(
    _ value: Value, forKey key: Key, expecting version: UInt64?, _ options: EntryOptions,
    durability: Durability?
  ) throws(StoreError) -> CompareAndSetResult {
    let start = callStart()
    defer { note(.write, since: start) }
    let tierKey = held == nil ? nil : try tierKey(key)
    let whole = value
    var result = CompareAndSetResult.mismatch(current: nil)
    try encode(value, forKey: key) { (bytes, value) throws(StoreError) in
      try noteWrite(bytes)
      while true {
        let guarded = try guardedTags(bytes, of: version)
        result = try write(
          value, bytes, of: key,
          { if let tierKey { take($0, of: whole, forKey: tierKey, options) } }
        ) {
          (removals: inout [RemovalEvent]) throws(StoreError) in
          defer { noteWritten(bytes) }
          return try enter(
            value, forKey: bytes, expecting: version, guarded, options: options,
            durability: durability, removals: &removals)
        }
        if !waits(for: guarded, after: result, expecting: version) { return }
      }
    }
    return result
  }

  /// The tags of the entry to replace. The write fails if one of them is removed in the meantime.
  /// Removes the entry if a mark already hides it.
  func guardedTags(_ key: RawSpan, of version: UInt64?) throws(StoreError) -> [[UInt8]] {
    guard let present = try settle(key), present.version == version else { return [] }
    return present.tags
  }

  /// Enters a write of one value if its version is the expected one and none of these tags has been
  /// removed since.
  func enter(
    _ value: RawSpan, forKey key: RawSpan, expecting version: UInt64?, _ tags: [[UInt8]],
    options: EntryOptions, durability: Durability?, removals: inout [RemovalEvent]
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

  /// Whether a write found the expected version but failed because one of these tags was being
  /// removed. If so, waits for the end of that removal.
  func waits(
    for tags: [[UInt8]], after result: CompareAndSetResult, expecting version: UInt64?
  ) -> Bool {
    guard !tags.isEmpty, result == .mismatch(current: version) else { return false }
    marks.wait(for: tags)
    return true
  }

  /// Makes a value's lifetime longer or shorter. The call writes the value again, with its tags,
  /// metadata and idle limit, so the entry gets a new version, and observers learn that the old one
  /// was replaced. What a load of the key brings that began before is then not kept.
  ///
  /// - Parameters:
  ///   - lifetime: counted from now.
  ///   - key: the key.
  ///   - durability: `nil` for the configured class.
  /// - Returns: whether the key had a value.
  @discardableResult
  public func setLifetime(
    _ lifetime: Lifetime, forKey key: Key, durability: Durability? = nil
  ) throws(StoreError) -> Bool {
    try finishing(.write) { (entered) throws(StoreError) in
      try setLifetime(lifetime, of: key, durability: durability, &entered) { true } != nil
    }
  }

  /// Sets the lifetime of a value, unless one of its tags has been removed.
  ///
  /// - Parameters:
  ///   - neverShortens: see `Store.enterLifetime`.
  ///   - version: see `Store.enterLifetime`.
  ///   - isWanted: called under a lock, so it must only read.
  /// - Returns: the version of the value that now lives that long, or `nil` if the key has no such
  ///   value.
  func setLifetime(
    _ lifetime: Lifetime, neverShortens: Bool = false, of key: Key, version: UInt64? = nil,
    durability: Durability?, _ entered: inout PendingWrite,
    ifWanted isWanted: @escaping @Sendable () -> Bool
  ) throws(StoreError) -> UInt64? {
    try keyCoder.encode(key) { (bytes) throws(StoreError) -> UInt64? in
      try checkKey(bytes)
      if let tags = try settle(bytes)?.tags { marks.wait(for: tags) }
      var removals: [RemovalEvent] = []
      var renewed: Renewed?
      do throws(StoreError) {
        renewed = try store.enterLifetime(
          lifetime, neverShortens: neverShortens, ofKey: bytes, version: version,
          durability: durability, &entered, removals: &removals
        ) { [marks] metadata, version in
          isWanted()
            && !marks.forbids(
              CacheMetadata.tags(in: metadata.rawSpan), since: version, isLoaded: false)
        }
      } catch {
        drop(removals)
        events.settle([], after: removals)
        throw error
      }
      drop(removals)
      guard let renewed else {
        events.settle([], after: removals)
        return nil
      }
      if renewed.isWritten {
        events.settle(
          key, bytes, version: renewed.version, replacing: renewed.replaced, after: removals)
      } else {
        events.settle([], after: removals)
      }
      return renewed.version
    }
  }
}
