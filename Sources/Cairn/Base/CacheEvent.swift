/// An event of a cache, reported after the fact and outside all locks. A minor version may add
/// cases to events and causes, so give every `switch` a `default`.
public enum CacheEvent<Key: Sendable>: Sendable {
  /// The key has a new value. If it had a value before, that value's removal, with the cause
  /// `replaced` or `expired`, is reported just before. Evictions to make room are reported
  /// afterwards.
  ///
  /// Every value that a cache accepts is reported, even if no read can find it because its
  /// lifetime or idle limit is zero or less, or because it does not fit in memory. Its removal
  /// follows: at once in memory, and on disk once expired entries are removed. A call that throws
  /// reports nothing, for example if a value is too large for the disk.
  case inserted(key: Key)
  /// A value was removed. Its insertion was reported before, unless the value is older than the
  /// observation or than the open of a cache on disk.
  case removed(key: Key, cause: RemovalCause)
  /// All entries were removed at once: `count` entries, none reported separately.
  case removedAll(count: Int)
  /// A key's value is damaged on disk. A scrub reports this, whether `scrubBytesPerSecond` is
  /// configured or `scrub` is called. The value stays: reading it throws, and a write or a load
  /// replaces it.
  case damaged(key: Key)
  /// The system is short of memory. Reported before the cache shrinks, and even if it does not.
  case memoryPressure(MemoryPressure)
  /// The host reported that the program went to the background. Reported before the cache is
  /// cleared, and even if it is not.
  case enteredBackground
}

extension CacheEvent: Equatable where Key: Equatable {}
extension CacheEvent: Hashable where Key: Hashable {}
