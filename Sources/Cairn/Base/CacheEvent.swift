/// Something that happened to a cache, told after it happened, outside all locks. A minor version may add cases,
/// here and to the causes, so a `switch` keeps a `default`.
public enum CacheEvent<Key: Sendable>: Sendable {
  /// The key was given a new value. Where it had one before, its removal with the cause `replaced`, or `expired`, was
  /// told just before; what had to make room for it is told after it.
  ///
  /// Every value that a cache accepts is told, even one that no read can find: because its lifetime or idle limit is
  /// zero or less, or because it does not fit in memory. Its removal follows: at once in memory, and on disk once
  /// what has expired is removed. A call that throws tells nothing, as where a value is too large for the disk.
  case inserted(key: Key)
  /// A value went. Its insertion was told before, unless it was there before the observer, or before the cache on disk
  /// was opened.
  case removed(key: Key, cause: RemovalCause)
  /// Everything went at once: so many entries, of which none is told of by itself.
  case removedAll(count: Int)
  /// The bytes on disk of a key's value are damaged: told by a scrub, with `scrubBytesPerSecond` in the configuration of the
  /// store or by hand. The value stays: a read of it throws, and a write or a load heals it.
  case damaged(key: Key)
  /// The system is short of memory. Told before the cache makes itself smaller, also where it does not.
  case memoryPressure(MemoryPressure)
  /// The host said that the program went to the background. Told before the cache is cleared, also
  /// where it is not.
  case enteredBackground
}

extension CacheEvent: Equatable where Key: Equatable {}
extension CacheEvent: Hashable where Key: Hashable {}
