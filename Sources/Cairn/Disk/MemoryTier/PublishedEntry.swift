public import CairnStore

/// The entry that memory will hold once a write is on disk. Made before the write.
@usableFromInline
struct PublishedEntry<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline let value: Value
  @usableFromInline let key: TierKey<Key>
  @usableFromInline let hasTags: Bool
  /// Whether memory holds the value, or only drops the old one.
  @usableFromInline let isHeld: Bool
  /// The value's cost. With `nil`, the cost is the size of the value on disk.
  @usableFromInline let cost: Int?
  @usableFromInline let ticket: CacheTicket
  @usableFromInline let times: EntryTimes
  /// The change count of the defaults, read before `times` was made.
  @usableFromInline let changes: Int

  @inlinable
  init(
    _ value: Value, _ key: TierKey<Key>, _ options: borrowing EntryOptions,
    in memory: MemoryCache<TierKey<Key>, Value>
  ) {
    self.value = value
    self.key = key
    hasTags = options.mayHaveTags
    isHeld = options.placement != .disk
    cost = options.cost ?? memory.knownCost(of: value, forKey: key)
    ticket = memory.ticket(forKey: key)
    changes = memory.clock.changeCount
    times = memory.clock.times(
      options.lifetime ?? .standard, idleLimit: options.idleLimit,
      isNeverIdle: options.isNeverIdle)
  }

  @inlinable
  func take(_ step: TierStep, in memory: MemoryCache<TierKey<Key>, Value>) {
    switch step {
    case .publish(let version, let byteCount):
      publish(to: memory, version: version, byteCount: byteCount)
    case .forget: memory.invalidate(key, through: nil, .removed)
    case .show(let version?): memory.noteShown(version, of: key)
    // The caller treats an entry that only memory has as evicted.
    case .show(nil): memory.invalidate(key, through: nil, .removed)
    }
  }

  /// Stores the entry in memory, unless memory knows of a newer version.
  ///
  /// - Parameter byteCount: the size of the value on disk.
  @inlinable
  func publish(to memory: MemoryCache<TierKey<Key>, Value>, version: UInt64, byteCount: Int) {
    // If the defaults are changing or have changed since, the entry on disk may expire at another
    // time.
    if !isHeld || changes & 1 != 0 || memory.clock.haveDefaultsChanged(since: changes) {
      memory.invalidate(key, through: version - 1, .replaced)
      return
    }
    memory.publish(
      value, forKey: key, ticket: ticket, version: version, times, cost: cost ?? byteCount,
      hasTags: hasTags)
  }
}

extension PublishedEntry {
  /// Stores an entry in memory that the disk does not have.
  ///
  /// - Parameters:
  ///   - byteCount: the size of the value in bytes.
  ///   - displace: see `MemoryCache.place`.
  func place<Result>(
    in memory: MemoryCache<TierKey<Key>, Value>, byteCount: Int,
    _ displace: (_ place: (_ version: UInt64) -> Void) throws(CacheError) -> Result
  ) throws(CacheError) -> Result {
    try forgettingUnknown(in: memory) { () throws(CacheError) in
      try memory.place(
        value, forKey: key, times, cost: cost ?? byteCount, hasTags: hasTags, displace)
    }
  }

  /// Waits for a placement's sync.
  func finish(
    _ pending: PendingWrite, in memory: MemoryCache<TierKey<Key>, Value>,
    _ wait: (PendingWrite) throws(CacheError) -> Void
  ) throws(CacheError) {
    try forgettingUnknown(in: memory) { () throws(CacheError) in try wait(pending) }
  }

  /// Drops the key from memory if `body` throws and the state on disk is unknown.
  private func forgettingUnknown<Result>(
    in memory: MemoryCache<TierKey<Key>, Value>, _ body: () throws(CacheError) -> Result
  ) throws(CacheError) -> Result {
    do throws(CacheError) { return try body() } catch {
      if !error.hasWrittenNothing { memory.invalidate(key, through: nil, .removed) }
      throw error
    }
  }
}

/// How memory must change for a write.
@usableFromInline
enum TierStep: Sendable {
  /// The write is on disk.
  case publish(version: UInt64, byteCount: Int)
  /// It is unknown whether the write is on disk.
  case forget
  /// The write was not made. The caller receives the version that the key has instead.
  case show(version: UInt64?)
}

/// A lifetime extension for memory to apply once the extension is on disk. Made before the write,
/// so that the value expires in memory no later than on disk.
struct TierExtension<Key: Hashable & Sendable, Value: Sendable> {
  private let key: TierKey<Key>
  private let held: MemoryCache<TierKey<Key>, Value>
  private let ticket: CacheTicket
  private let times: EntryTimes

  init(of key: TierKey<Key>, to lifetime: Duration, in held: MemoryCache<TierKey<Key>, Value>) {
    self.key = key
    self.held = held
    ticket = held.ticket(forKey: key)
    times = held.clock.times(.after(lifetime), idleLimit: nil)
  }

  /// - Parameter version: see `MemoryCache.extendLifetime`.
  func apply(version: UInt64? = nil) {
    held.extendLifetime(of: key, to: times.expires, ticket: ticket, version: version)
  }

  /// Extends the lifetime of an entry that only memory has.
  ///
  /// - Returns: whether there is such an entry.
  func applyAlone() -> Bool { held.extendAlone(key, to: times.expires) }
}
