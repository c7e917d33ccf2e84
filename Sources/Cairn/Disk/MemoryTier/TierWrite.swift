public import CairnStore

/// How memory will hold a value once the value's write is on disk. Made before the write. Has
/// neither the key nor the value, so that it is copied without counting references.
@usableFromInline
struct TierWrite: Sendable {
  @usableFromInline let hasTags: Bool
  /// The value's cost. With `nil`, the cost is the size of the value on disk.
  @usableFromInline let cost: Int?
  @usableFromInline let ticket: CacheTicket
  @usableFromInline let times: EntryTimes
  /// The change count of the defaults, read before `times` was made.
  @usableFromInline let changes: Int

  @inlinable
  init<Key, Value>(
    of value: Value, forKey key: TierKey<Key>, _ options: borrowing EntryOptions,
    in memory: MemoryCache<TierKey<Key>, Value>
  ) {
    hasTags = options.mayHaveTags
    cost = options.cost ?? memory.knownCost(of: value, forKey: key)
    ticket = memory.ticket(forKey: key)
    changes = memory.clock.changeCount
    times = memory.clock.times(
      options.lifetime ?? .standard, idleLimit: options.idleLimit,
      isNeverIdle: options.isNeverIdle)
  }

  @inlinable
  func take<Key, Value>(
    _ step: TierStep, of value: Value, forKey key: TierKey<Key>,
    in memory: MemoryCache<TierKey<Key>, Value>
  ) {
    switch step {
    case .publish(let version, let byteCount):
      publish(value, forKey: key, to: memory, version: version, byteCount: byteCount)
    case .keep(let version, let byteCount):
      memory.promote(
        value, forKey: key, ticket: ticket, times, cost: cost ?? byteCount, version: version,
        hasTags: hasTags)
    case .forget: memory.invalidate(key, through: nil, .removed)
    case .show(let version): memory.noteShown(version, of: key)
    }
  }

  /// Stores the entry in memory, unless memory knows of a newer version.
  ///
  /// - Parameter byteCount: the size of the value on disk.
  @inlinable
  @inline(__always)
  func publish<Key, Value>(
    _ value: Value, forKey key: TierKey<Key>, to memory: MemoryCache<TierKey<Key>, Value>,
    version: UInt64, byteCount: Int
  ) {
    // If the defaults are changing or have changed since, the entry on disk may expire at another
    // time.
    if changes & 1 != 0 || memory.clock.haveDefaultsChanged(since: changes) {
      memory.invalidate(key, through: version - 1, .replaced)
      return
    }
    memory.publish(
      value, forKey: key, ticket: ticket, version: version, times, cost: cost ?? byteCount,
      hasTags: hasTags)
  }
}

/// How memory must change for a write.
@usableFromInline
enum TierStep: Sendable {
  /// The write is on disk.
  case publish(version: UInt64, byteCount: Int)
  /// The disk takes no more writes, and has no value of the key.
  case keep(version: UInt64, byteCount: Int)
  /// It is unknown whether the write is on disk.
  case forget
  /// The write was not made. The caller receives the version that the key has instead.
  case show(version: UInt64?)
}
