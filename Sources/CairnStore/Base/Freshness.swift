/// When a store that follows another process checks for that process's writes.
public enum Freshness: Sendable, Hashable {
  /// At each read. A read sees every write acknowledged before the read began. It checks three
  /// words of shared memory and, if there are new writes, waits while they enter the index.
  case everyRead
  /// At the first read after this time, and at `Store.catchUp`.
  case interval(Duration)
  /// Only at `Store.catchUp`. Between calls, reads see one state.
  case manual
}
