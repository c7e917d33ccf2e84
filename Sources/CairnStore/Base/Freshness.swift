/// When a store that follows another process sees that process's writes.
public enum Freshness: Sendable, Hashable {
  /// At each read, which sees every write acknowledged before it began. A read checks three words
  /// of memory, and waits while new writes enter the index.
  case everyRead
  /// At the first read after this long, and at `Store.catchUp`.
  case interval(Duration)
  /// Only at `Store.catchUp`. Between calls, reads see one state.
  case manual
}
