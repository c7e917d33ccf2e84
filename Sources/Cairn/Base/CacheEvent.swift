/// Something that happened to a cache, reported after it happened, outside all locks. A minor
/// version may add cases, here and to the causes, so give every `switch` a `default`.
public enum CacheEvent<Key: Sendable>: Sendable {
  /// The key has a new value. If it had one before, that value's removal, with the cause `replaced`
  /// or `expired`, was reported just before; what made room is reported afterwards.
  ///
  /// Every value that a cache accepts is reported, even one that no read can find because its
  /// lifetime or idle limit is zero or less, or because it does not fit in memory. Its removal
  /// follows: at once in memory, and on disk once expired entries are removed. A call that throws
  /// reports nothing, for example if a value is too large for the disk.
  case inserted(key: Key)
  /// A value was removed. Its insertion was reported before, unless it was there before the
  /// observer, or before the cache on disk was opened.
  case removed(key: Key, cause: RemovalCause)
  /// Everything was removed at once: `count` entries, none of them reported separately.
  case removedAll(count: Int)
  /// The bytes on disk of a key's value are damaged. A scrub reports this, with
  /// `scrubBytesPerSecond` in the configuration of the store or when called. The value stays:
  /// reading it throws, and a write or a load replaces it.
  case damaged(key: Key)
  /// The system is short of memory. Reported before the cache shrinks, and even if it does not.
  case memoryPressure(MemoryPressure)
  /// The host reported that the program went to the background. Reported before the cache is
  /// cleared, and even if it is not.
  case enteredBackground
}

extension CacheEvent: Equatable where Key: Equatable {}
extension CacheEvent: Hashable where Key: Hashable {}
