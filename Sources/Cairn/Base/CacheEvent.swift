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
  case removed(key: Key, cause: CacheRemovalCause)
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

/// Why a value left a cache. A minor version may add cases.
public enum CacheRemovalCause: Sendable, Hashable {
  /// Somebody removed it.
  case removed
  /// A newer value took its place.
  case replaced
  /// Its lifetime had ended, or it was idle for too long.
  case expired
  /// It had to make room.
  case evicted(CacheEvictionCause)
}

/// What an entry had to make room for. A minor version may add cases.
public enum CacheEvictionCause: Sendable, Hashable, CaseIterable {
  /// The limit on the number of entries.
  case countLimit
  /// The limit on their cost; on disk, the limit on bytes. In memory a value that by itself costs more than the limit goes at once, and
  /// nothing else on its account.
  case costLimit
  /// Free space on the disk: the floor of a cache on disk, or a trim to so much of it.
  case freeDiskSpace
  /// A trim that somebody asked for.
  case trim
  /// The system's shortage of memory.
  case memoryPressure
  /// The program went to the background.
  case background
}
