public import CairnStore

/// Removing values by their keys.
extension DiskCache {
  /// Removes the value of a key, from both tiers. Does not read the value, so a value that cannot
  /// be decoded can also be removed.
  ///
  /// - Returns: whether the key had a value. If it had none, nothing is written.
  /// - Throws: see `setValue`.
  @discardableResult
  public func removeValue(forKey key: Key, durability: Durability?) throws(CacheError) -> Bool {
    try removeValue(forKey: key, durability: durability, callStart())
  }

  func removeValue(
    forKey key: Key, durability: Durability?, _ start: CallStart
  ) throws(CacheError) -> Bool {
    defer { note(.removal, of: key, since: start) }
    let removed: Bool? = try removing(key) { () throws(CacheError) in
      try removeStored(key, durability: durability) ? true : nil
    }
    return removed ?? false
  }

  private func removeStored(_ key: Key, durability: Durability?) throws(CacheError) -> Bool {
    try keyCoder.encode(key) { (key) throws(CacheError) in
      let isLoading = try noteWrite(key)
      try settle(key)
      return try storing { () throws(StoreError) in
        if try store.removeValue(forKey: key, durability: durability) { return true }
        if isLoading {
          // A load may have kept its value just after that call. After `passWriters`, no load does.
          store.passWriters()
          if try store.removeValue(forKey: key, durability: durability) { return true }
        }
        try removeRetained(key, durability: durability)
        return false
      }
    }
  }

  /// Removes the value of a key, with the configured durability.
  @discardableResult
  public func removeValue(forKey key: Key) throws(CacheError) -> Bool {
    try removeValue(forKey: key, durability: nil)
  }

  /// Removes the value of a key if its version is the expected one.
  ///
  /// - Returns: whether the version matched and the value was removed.
  /// - Throws: see `setValue`; `store` with `corrupt` if the record is damaged.
  public func compareAndRemove(
    forKey key: Key, expecting version: UInt64, durability: Durability?
  ) throws(CacheError) -> Bool {
    try compareAndRemove(forKey: key, expecting: version, durability: durability, callStart())
  }

  func compareAndRemove(
    forKey key: Key, expecting version: UInt64, durability: Durability?, _ start: CallStart
  ) throws(CacheError) -> Bool {
    defer { note(.removal, of: key, since: start) }
    let tierKey = held == nil ? nil : try tierKey(key)
    do throws(CacheError) {
      let isRemoved = try keyCoder.encode(key) { (key) throws(CacheError) in
        try noteWrite(key)
        try settle(key)
        return try storing { () throws(StoreError) in
          try store.compareAndRemove(forKey: key, expecting: version, durability: durability)
        }
      }
      // The result tells the caller that this version is gone, so memory must not show it. The
      // caller may pass any number, so ignore versions that the store has not assigned.
      if !isRemoved, let tierKey {
        held?.invalidate(tierKey, through: min(version, store.lastVersion), .replaced)
      }
      return isRemoved
    } catch {
      if let tierKey { noteFailure(error, of: tierKey) }
      throw error
    }
  }

  /// Removes the value of a key if its version is the expected one, with the configured durability.
  public func compareAndRemove(
    forKey key: Key, expecting version: UInt64
  ) throws(CacheError) -> Bool {
    try compareAndRemove(forKey: key, expecting: version, durability: nil)
  }

  /// Removes the value of a key and returns it. If several callers take a value at once, only one
  /// gets it.
  ///
  /// - Returns: the value, or `nil` if the key had no unexpired value.
  /// - Throws: see `value(forKey:)` and `removeValue(forKey:)`. Nothing was removed, except with
  ///   `durabilityUnknown`: the value is then gone, and the caller does not get it.
  public func takeValue(forKey key: Key) throws(CacheError) -> Value? {
    try takeValue(forKey: key, callStart())
  }

  func takeValue(forKey key: Key, _ start: CallStart) throws(CacheError) -> Value? {
    defer { note(.removal, of: key, since: start) }
    let value = try removing(key) { () throws(CacheError) in try takeStored(key) }
    countRead(isHit: value != nil)
    return value
  }

  private func takeStored(_ key: Key) throws(CacheError) -> Value? {
    var isLoading = try keyCoder.encode(key) { (key) throws(CacheError) in
      try noteWrite(key)
    }
    while true {
      guard let found = try versioned(key, counts: false) else {
        if !isLoading {
          try keyCoder.encode(key) { (key) throws(CacheError) in
            try storing { () throws(StoreError) in try removeRetained(key, durability: nil) }
          }
          return nil
        }
        // See `removeValue`.
        store.passWriters()
        isLoading = false
        continue
      }
      let untimed = CallStart()
      if try compareAndRemove(forKey: key, expecting: found.version, durability: nil, untimed) {
        return found.value
      }
      // Another caller rewrote or took the value.
    }
  }

  /// Removes the values of many keys. Each removal is a separate write, and one sync covers all of
  /// them.
  ///
  /// - Returns: the number of removed values.
  /// - Throws: see `setValue`. The first removal that fails ends the call, and earlier removals
  ///   stay.
  @discardableResult
  public func removeValues(
    forKeys keys: some Sequence<Key>, durability: Durability?
  ) throws(CacheError) -> Int {
    try removeValues(forKeys: keys, durability: durability, callStart())
  }

  func removeValues(
    forKeys keys: some Sequence<Key>, durability: Durability?, _ start: CallStart
  ) throws(CacheError) -> Int {
    defer { note(.removal, since: start) }
    var encoded: [[UInt8]] = []
    var tierKeys: [TierKey<Key>] = []
    for key in keys {
      encoded.append(try bytes(of: key))
      try encoded[encoded.count - 1].withBytes { (key) throws(CacheError) in
        try checkKey(key)
        try settle(key)
      }
      if held != nil { tierKeys.append(try tierKey(key)) }
    }
    // Absent keys cause no events, so update memory here. See also `removing`.
    defer { for key in tierKeys { held?.invalidate(key, through: nil, .removed) } }
    let loading = encoded.filter { flights.noteWrite($0) }
    return try storing { () throws(StoreError) in
      var count = try store.removeValues(forKeys: encoded, durability: durability)
      if !loading.isEmpty {
        // See `removeValue`.
        store.passWriters()
        count += try store.removeValues(forKeys: loading, durability: durability)
      }
      for key in encoded where flights.retained > 0 {
        try key.withBytes { (key) throws(StoreError) in
          try removeRetained(key, durability: durability)
        }
      }
      return count
    }
  }

  /// Removes the values of many keys, with the configured durability.
  @discardableResult
  public func removeValues(forKeys keys: some Sequence<Key>) throws(CacheError) -> Int {
    try removeValues(forKeys: keys, durability: nil)
  }

  /// Removes an expired value that some calls may still receive, if the cache keeps such values.
  func removeRetained(_ key: RawSpan, durability: Durability?) throws(StoreError) {
    if flights.retained == 0 { return }
    try store.removeExpiredValue(forKey: key, durability: durability)
  }
}
