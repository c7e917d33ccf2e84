/// What can go wrong with a cache.
public enum CacheError: Error, Sendable, Hashable {
  case circularLoad
}
