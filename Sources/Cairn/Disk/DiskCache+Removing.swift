public import CairnStore

/// Removing values by their keys.
extension DiskCache {
  /// Removes the value of a key, from both tiers. Does not read the value, so a value that cannot
  /// be decoded can also be removed.
  ///
  /// - Returns: whether the key had a value. If it had none, nothing is written.
  /// - Throws: see `setValue`.
  @discardableResult
  public func removeValue(
    forKey key: Key, durability: Durability? = nil
  ) throws(StoreError) -> Bool {
    try finishing(.removal) { (entered) throws(StoreError) in
      try enterRemovals(ofKeys: [key], durability: durability, &entered) > 0
    }
  }

  /// Removes the value of a key if its version is the expected one.
  ///
  /// - Returns: whether the version matched and the value was removed.
  /// - Throws: see `setValue`; `corrupt` if the record is damaged.
  public func compareAndRemove(
    forKey key: Key, expecting version: UInt64, durability: Durability? = nil
  ) throws(StoreError) -> Bool {
    try finishing(.removal) { (entered) throws(StoreError) in
      try enterRemoval(ofKey: key, expecting: version, durability: durability, &entered)
    }
  }

  func enterRemoval(
    ofKey key: Key, expecting version: UInt64, durability: Durability?,
    _ entered: inout PendingWrite
  ) throws(StoreError) -> Bool {
    defer { dropKept(key) }
    return try keyCoder.encode(key) { (key) throws(StoreError) in
      try noteWrite(key)
      try settle(key)
      return try store.enterRemoval(
        ofKey: key, expecting: version, durability: durability, &entered)
    }
  }

  /// Removes the value of a key and returns it. If several callers take a value at once, only one
  /// gets it.
  ///
  /// - Returns: the value, or `nil` if the key had no unexpired value.
  /// - Throws: see `value(forKey:)` and `removeValue(forKey:)`. Nothing was removed, except with
  ///   `durabilityUnknown`: the value is then gone, and the caller does not get it.
  public func takeValue(forKey key: Key) throws(StoreError) -> Value? {
    try finishing(.removal) { (entered) throws(StoreError) in
      try enterTaking(ofKey: key, &entered)
    }
  }

  func enterTaking(
    ofKey key: Key, _ entered: inout PendingWrite
  ) throws(StoreError) -> Value? {
    var isLoading = try keyCoder.encode(key) { (key) throws(StoreError) in try noteWrite(key) }
    while true {
      if let found = try versioned(key, counts: false) {
        let isTaken = try enterRemoval(
          ofKey: key, expecting: found.version, durability: nil, &entered)
        if isTaken {
          countRead(isHit: true)
          return found.value
        }
        // Another caller rewrote or took the value.
      } else if isLoading {
        // See `enterRemovals`.
        store.passWriters()
        isLoading = false
      } else {
        break
      }
    }
    countRead(isHit: false)
    let bytes = try bytes(of: key)
    defer { dropKept(key) }
    try enterRemovalOfRetained(bytes, durability: nil, &entered)
    return nil
  }

  /// Removes the values of many keys. Each removal is a separate write, and one sync covers all of
  /// them.
  ///
  /// - Returns: the number of removed values.
  /// - Throws: see `setValue`. The first removal that fails ends the call, and earlier removals
  ///   stay.
  @discardableResult
  public func removeValues(
    forKeys keys: some Sequence<Key>, durability: Durability? = nil
  ) throws(StoreError) -> Int {
    try finishing(.removal) { (entered) throws(StoreError) in
      try enterRemovals(ofKeys: Array(keys), durability: durability, &entered)
    }
  }

  func enterRemovals(
    ofKeys keys: [Key], durability: Durability?, _ entered: inout PendingWrite
  ) throws(StoreError) -> Int {
    var encoded: [[UInt8]] = []
    defer { for key in keys { dropKept(key) } }
    for key in keys {
      let bytes = try bytes(of: key)
      try checkKey(bytes.rawSpan)
      try settle(bytes.rawSpan)
      encoded.append(bytes)
    }
    let loading = encoded.filter { flights.noteWrite($0) }
    var count = try store.enterRemovals(
      ofKeys: encoded, durability: durability, &entered)
    if !loading.isEmpty {
      // A load may have kept its value just after that call. After `passWriters`, no load does.
      store.passWriters()
      count += try store.enterRemovals(
        ofKeys: loading, durability: durability, &entered)
    }
    for key in encoded { try enterRemovalOfRetained(key, durability: durability, &entered) }
    return count
  }

  /// Removes an expired value that some calls may still receive, if the cache keeps such values.
  func enterRemovalOfRetained(
    _ key: [UInt8], durability: Durability?, _ entered: inout PendingWrite
  ) throws(StoreError) {
    if flights.retained == 0 { return }
    try store.removeExpiredValue(
      forKey: key.rawSpan, durability: durability, &entered)
  }
}
