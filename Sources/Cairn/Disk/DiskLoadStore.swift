internal import CairnStore
internal import Synchronization

/// One key of a cache on disk, for loads with a policy.
struct DiskLoadStore<CacheKey: Hashable & Sendable, Value: Sendable>: LoadStore {
  typealias Key = [UInt8]

  let cache: DiskCache<CacheKey, Value>
  let key: CacheKey
  /// The marks of the load's beginning, and the error of reading the value to replace, if that is
  /// damaged.
  private let begun = BegunLoad()

  private final class BegunLoad: Sendable {
    let damage = Lock<StoreError?>(nil)
    /// The newest version when the load began.
    let start = Atomic<UInt64>(0)
  }

  var standardLifetime: Lifetime { cache.configuration.lifetime }

  var keepsValues: Bool {
    !cache.store.isFollowing && !cache.events.hasStopped.load(ordering: .relaxed)
  }

  func held(_ purpose: HeldPurpose) throws -> HeldValue<Value>? {
    // The last check before the loader is called.
    if purpose == .prior { begun.start.store(cache.store.lastVersion, ordering: .relaxed) }
    return try cache.orDropped(key, counts: purpose == .answer) { error in
      begun.damage.withLock { $0 = error }
    } _: { () throws(StoreError) in
      try cache.heldValue(forKey: key, purpose)
    }
  }

  func keep(
    _ loaded: Loaded<Value>, replacing version: UInt64?, _ flight: Flight<Loaded<Value>?>
  ) async {
    await cache.keep(
      loaded, forKey: key, replacing: version, since: begun.start.load(ordering: .relaxed),
      begun.damage.withLock { $0 }, flight)
  }

  func renew(
    version: UInt64, to lifetime: Lifetime, _ flight: Flight<Loaded<Value>?>
  ) async {
    await cache.renew(key, version: version, to: lifetime, flight)
  }

  func drop(version: UInt64?, _ flight: Flight<Loaded<Value>?>) async {
    if let version, !flight.isOutdated { await cache.drop(key, version: version) }
  }

  func noteUnheard(_ error: any Error) { cache.events.noteFailedLoad(of: key, error) }
}

extension DiskCache {
  /// The value of a key, fresh or retained. The loader gets the value on disk, which its result
  /// replaces.
  func heldValue(forKey key: Key, _ purpose: HeldPurpose) throws(StoreError) -> HeldValue<Value>? {
    guard let held, purpose != .prior else { return try storedHeld(key, purpose)?.0 }
    let tierKey = try tierKey(key)
    let isRead = purpose == .answer
    if let found = held.heldValue(forKey: tierKey, isRead: isRead),
      try isCurrent(
        found.value.place, ofHash: tierKey.hash, at: isRead ? held.clock.now() : nil)
        ? true : settle(tierKey, found.value.place, isAccess: isRead)
    {
      return HeldValue(
        value: found.value.value, version: found.version, written: found.written,
        expires: found.expires)
    }
    guard let (found, source) = try storedHeld(key, purpose) else { return nil }
    if let source { promote(found.value, source, forKey: tierKey) }
    return found
  }

  /// The value of a key on disk.
  ///
  /// - Returns: its times and metadata, and if it is fresh, what memory needs to keep it.
  private func storedHeld(
    _ key: Key, _ purpose: HeldPurpose
  ) throws(StoreError) -> (HeldValue<Value>, TierSource?)? {
    let isRead = purpose == .answer
    let history = try history()
    let found = try fetch(key, isAccess: isRead, counts: isRead) {
      (record) throws(StoreError) -> (HeldValue<Value>, TierSource?) in
      let source = TierSource(
        record, hasTags: CacheMetadata.hasTags(record.metadata), history: history)
      return (try heldValue(record, source.info, purpose), source)
    }
    if let found { return found }
    let retention = flights.retained
    if retention == 0 || events.keptCount.load(ordering: .relaxed) > 0 { return nil }
    let start = callStart()
    defer { note(.read, since: start) }
    return try keyCoder.encode(key) { (key) throws(StoreError) in
      let record = try unhidden { () throws(StoreError) in
        try store.expiredEntry(forKey: key, within: retention)
      }
      guard let record else { return nil }
      return (try heldValue(record, record.info, purpose), nil)
    }
  }

  private func heldValue(
    _ record: borrowing PinnedEntry, _ info: EntryInfo, _ purpose: HeldPurpose
  ) throws(StoreError) -> HeldValue<Value> {
    let metadata = try metadata(of: record, wantsRest: purpose == .prior)
    return HeldValue(
      value: try decodeValue(record.value, version: record.version), version: info.version,
      written: info.written.millisecondsSinceEpoch,
      expires: info.expires?.millisecondsSinceEpoch ?? never, metadata: metadata.rest)
  }
}
