internal import CairnStore

// Entries that only memory has: those with the placement `.memory`, and loaded values that the
// admission keeps off the disk.
//
// 1. Such an entry enters memory under the log's lock, while the disk has nothing for its key. The
//    entry has the newest version. So every later write of the key is newer, and replaces the entry
//    when memory is updated.
// 2. The entry's version is at or below the mark of every tag whose removal begins later. So the
//    entry is then in doubt, and the disk cannot confirm it. The removal of any tag hides all older
//    entries with tags.
// 3. A read that does not find the key on disk leaves the entry in memory. Calls that compare
//    versions drop the entry.
extension DiskCache {
  /// Sets a value in memory only.
  @usableFromInline
  func setAlone(
    _ value: Value, forKey key: Key, options: EntryOptions, durability: Durability?,
    _ start: CallStart
  ) throws(CacheError) -> UInt64 {
    defer { note(.write, of: key, since: start) }
    guard let held else {
      if store.isFollowing { throw .store(.readOnly(path: path)) }
      throw .store(.unsupportedOption(name: "entry in memory only"))
    }
    let (entry, byteCount) = try alone(value, key, options, in: held)
    return try keyCoder.encode(key) { (bytes) throws(CacheError) in
      try noteWrite(bytes)
      var version: UInt64 = 0
      let flightKey = [UInt8](copying: bytes)
      let pending = try entry.place(in: held, byteCount: byteCount) { (place) throws(CacheError) in
        try storing { () throws(StoreError) in
          try store.displaceValue(forKey: bytes, durability: durability) { newest in
            version = newest
            place(newest)
            // A load that began in the meantime saw no value, and nothing on disk prevents it from
            // replacing this one.
            flights.markOutdated(flightKey)
          }
        }
      }
      try noteWrite(bytes)
      try entry.finish(pending, in: held) { (pending) throws(CacheError) in
        try storing { () throws(StoreError) in try store.finish(pending) }
      }
      return version
    }
  }

  /// Keeps a loaded value in memory only, or not at all, if its options or the admission require
  /// that.
  ///
  /// - Parameters: see `keep`.
  /// - Returns: `true` if the value was kept or refused, `false` if it is outdated, `nil` if it
  ///   must be written to disk.
  func keepAlone(
    _ loaded: Loaded<Value>, forKey key: Key, replacing version: UInt64?, since start: UInt64,
    _ flight: Flight<Loaded<Value>?>
  ) throws(CacheError) -> Bool? {
    let placement = loaded.options.placement
    if placement == .disk || (placement == .standard && sketch == nil && budget == nil) {
      return nil
    }
    return try keyCoder.encode(key) { (bytes) throws(CacheError) -> Bool? in
      try checkKey(bytes)
      try settle(bytes)
      if placement == .standard {
        guard try refuses(bytes) else { return nil }
        if held == nil {
          events.counters.admissionRefusals.add()
          return true
        }
      }
      guard let held else { throw .store(.unsupportedOption(name: "entry in memory only")) }
      let tags = try TagLimits.bytes(of: loaded.options.tags ?? [])
      let (entry, byteCount) = try alone(loaded.value, key, loaded.options, in: held)
      let pending = try entry.place(in: held, byteCount: byteCount) { (place) throws(CacheError) in
        try storing { () throws(StoreError) in
          let wanted = { @Sendable [marks] in
            !flight.isOutdated && !marks.forbids(tags, since: start, isLoaded: true)
          }
          return try store.displaceValue(
            forKey: bytes, replacing: version, ifWanted: wanted, place)
        }
      }
      guard let pending else { return false }
      if placement == .standard { events.counters.admissionRefusals.add() }
      try entry.finish(pending, in: held) { (pending) throws(CacheError) in
        try storing { () throws(StoreError) in try store.finish(pending) }
      }
      return true
    }
  }

  /// Extends the lifetime of a value that only memory has, unless the flight is outdated.
  ///
  /// - Returns: whether there is such a value.
  func renewAlone(
    _ key: Key, _ version: UInt64, to lifetime: Duration, _ flight: Flight<Loaded<Value>?>
  ) -> Bool {
    guard let held, let key = try? tierKey(key) else { return false }
    let times = held.clock.times(.after(lifetime), idleLimit: nil)
    return held.extendAlone(key, to: times.expires, version: version) { flight.isOutdated }
  }

  /// Throws if an entry is for memory only, which the caller does not support.
  @inline(__always)
  func checkPlacement(_ options: EntryOptions) throws(CacheError) {
    if options.placement == .memory {
      throw .store(.unsupportedOption(name: "entry in memory only"))
    }
  }

  /// Whether the admission keeps a loaded value off the disk: the budget is used up or the key is
  /// loaded for the first time, and the disk has no value for the key, fresh or stale.
  private func refuses(_ key: RawSpan) throws(CacheError) -> Bool {
    let isKnown = sketch?.note(key) ?? true
    if isKnown, budget?.hasBytes(at: store.clock.now()) ?? true { return false }
    return try storing { () throws(StoreError) in try store.hasExpired(key) == nil }
  }

  private func alone(
    _ value: Value, _ key: Key, _ options: EntryOptions, in held: MemoryCache<TierKey<Key>, Value>
  ) throws(CacheError) -> (entry: PublishedEntry<Key, Value>, byteCount: Int) {
    if options.tags != nil {
      _ = try TagLimits.bytes(of: options.tags ?? [])
      marks.noteUse()
    }
    let entry = PublishedEntry(value, try tierKey(key), options, in: held)
    var byteCount = 0
    if entry.cost == nil {
      try encode(value) { (bytes) throws(CacheError) in byteCount = bytes.byteCount }
    }
    return (entry, byteCount)
  }
}
