/// A change in a cache, reported afterwards and outside all locks. A minor version may add cases to
/// events and causes, so give every `switch` a `default`.
public enum CacheEvent<Key: Sendable>: Sendable {
  /// The key has a new value. If the key had a value before, the removal of that value (`replaced`
  /// or `expired`) is reported just before. Evictions to make room are reported afterwards.
  ///
  /// A call that throws reports no insertion. Every value that a cache accepts is reported, even if
  /// it expires at once or does not fit in memory. In that case, its removal is reported too: at
  /// once in memory, and on disk when expired entries are removed.
  case inserted(key: Key)
  /// A value was removed. Its insertion was reported earlier, unless it happened before the
  /// observation began or before the cache was opened.
  case removed(key: Key, cause: RemovalCause)
  /// All `count` entries were removed at once. They are not reported separately.
  case removedAll(count: Int)
  /// A scrub found that a key's value is damaged on disk. The value stays: reading it throws, and a
  /// write or a load replaces it.
  case damaged(key: Key)
  /// A load failed while no caller waited for it: a refresh ahead, or a load that callers left with
  /// a stale value. `reason` describes its error. The log of a cache on disk has it too.
  case loadFailed(key: Key, reason: String)
  /// The system is short of memory. Reported before the cache shrinks, and even if the cache does
  /// not shrink.
  case memoryPressure(MemoryPressure)
  /// The program called `enterBackground()`. Reported before the cache is cleared, and even if the
  /// cache is not cleared.
  case enteredBackground
}

extension CacheEvent: Equatable where Key: Equatable {}
extension CacheEvent: Hashable where Key: Hashable {}
