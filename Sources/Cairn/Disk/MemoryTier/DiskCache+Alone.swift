internal import CairnStore

// Entries that only memory has: those of the placement `.memory`, and loaded values that the admission
// keeps from the disk.
extension DiskCache {
  /// How often a value is placed anew because other keys were written meanwhile.
  private static var placingLimit: Int { 16 }

  /// Why a value was not placed yet: something was removed first, or it must not be placed.
  private enum Obstacle { case removed, present, unwanted }

  /// Sets a value in memory only.
  @usableFromInline
  func setAlone(
    _ value: Value, forKey key: Key, options: EntryOptions, durability: Durability?
  ) throws(CacheError) -> UInt64 {
    guard let held else {
      if store.isFollowing { throw .store(.readOnly(path: path)) }
      throw .store(.unsupportedOption(name: "entry in memory only"))
    }
    let (entry, byteCount) = try alone(value, key, options, in: held)
    do throws(CacheError) {
      return try keyCoder.encode(key) { (bytes) throws(CacheError) in
        // A load that is about to keep its value has done so after this, and none does it later.
        if try noteWrite(bytes) { store.passWriters() }
        let version = try placeAlone(entry, byteCount, in: held) { () throws(CacheError) in
          let isRemoved = try storing { () throws(StoreError) in
            if try store.removeValue(forKey: bytes, durability: durability) { return true }
            try removeRetained(bytes, durability: durability)
            return false
          }
          return isRemoved ? .removed : nil
        }
        return version ?? store.lastVersion
      }
    } catch {
      noteFailure(error, of: entry.key)
      throw error
    }
  }

  /// Keeps a loaded value in memory only, or not at all, if its options or the admission ask for that.
  ///
  /// - Parameters: see `keep`.
  /// - Returns: whether it was kept, or refused; `nil`: it is to be written to disk.
  func keepAlone(
    _ loaded: Loaded<Value>, forKey key: Key, replacing version: UInt64?, since start: UInt64,
    _ flight: Flight<Loaded<Value>?>
  ) throws(CacheError) -> Bool? {
    let isForMemory = loaded.options.placement == .memory
    if !isForMemory, sketch == nil { return nil }
    return try keyCoder.encode(key) { (bytes) throws(CacheError) -> Bool? in
      try checkKey(bytes)
      try settle(bytes)
      if !isForMemory {
        guard try refuses(bytes) else { return nil }
        events.counters.admissionRefusals.add()
        if held == nil { return true }
      }
      guard let held else { throw .store(.unsupportedOption(name: "entry in memory only")) }
      let tags = try TagLimits.bytes(of: loaded.options.tags ?? [])
      let (entry, byteCount) = try alone(loaded.value, key, loaded.options, in: held)
      let placed = try placeAlone(entry, byteCount, in: held) { () throws(CacheError) in
        if flight.isOutdated || marks.forbids(tags, since: start, isLoaded: true) {
          return .unwanted
        }
        return try storing { () throws(StoreError) -> Obstacle? in
          if let version, try store.compareAndRemove(forKey: bytes, expecting: version) {
            return .removed
          }
          // Somebody wrote it since the load began.
          if try store.hasExpired(bytes) == false { return .present }
          try removeRetained(bytes, durability: nil)
          return nil
        }
      }
      return placed != nil
    }
  }

  /// Extends the life of a value that only memory has, unless the flight is outdated.
  ///
  /// - Returns: whether there is such a value.
  func renewAlone(
    _ key: Key, _ version: UInt64, to lifetime: Duration, _ flight: Flight<Loaded<Value>?>
  ) -> Bool {
    guard let held, let key = try? tierKey(key) else { return false }
    let times = held.clock.times(.after(lifetime), idleLimit: nil)
    return held.extendAlone(key, to: times.expires, version: version) { flight.isOutdated }
  }

  /// Throws if an entry is for memory only, which is not possible here.
  @inline(__always)
  func checkPlacement(_ options: EntryOptions) throws(CacheError) {
    if options.placement == .memory {
      throw .store(.unsupportedOption(name: "entry in memory only"))
    }
  }

  /// Whether the admission keeps a loaded value from the disk: its key is loaded for the first time,
  /// and the disk has nothing of it, fresh or stale.
  private func refuses(_ key: RawSpan) throws(CacheError) -> Bool {
    guard let sketch, !sketch.note(key) else { return false }
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

  /// Places an entry in memory once the disk has nothing of its key.
  ///
  /// 1. The ticket comes first, then the newest version, and only then is the disk asked. A write of the
  ///    key that the disk does not show is therefore newer than the entry, and replaces it when it is
  ///    published. Whatever was published or reported since makes the ticket void.
  /// 2. The entry is at or below the mark of every tag whose removal begins later, so it is in doubt, and
  ///    the disk does not vouch for it. The removal of any tag hides all older entries with tags.
  ///
  /// - Parameter clear: removes from disk what the entry replaces; called again after it has removed
  ///   something. Returns what is in the way.
  /// - Returns: the version of the entry; `nil`: memory has nothing of the key's older value, and not this
  ///   one.
  private func placeAlone(
    _ entry: PublishedEntry<Key, Value>, _ byteCount: Int,
    in held: MemoryCache<TierKey<Key>, Value>, clear: () throws(CacheError) -> Obstacle?
  ) throws(CacheError) -> UInt64? {
    var count = 0
    while count < Self.placingLimit {
      let ticket = held.ticket(forKey: entry.key)
      let version = store.lastVersion
      switch try clear() {
      case .unwanted, .present: return nil
      case .removed: continue
      case nil: break
      }
      if entry.place(in: held, ticket, version: version, byteCount: byteCount) { return version }
      count += 1
    }
    held.invalidate(entry.key, through: nil, .replaced)
    return nil
  }
}
