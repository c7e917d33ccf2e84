/// When a store that follows another process sees what that has written since.
public enum Freshness: Sendable, Hashable {
  /// With each read: it finds everything that was acknowledged before it began. A read looks at three words of memory, and
  /// waits for what is new to be entered.
  case everyRead
  /// With the first read after so long, and with `Store.catchUp`.
  case interval(Duration)
  /// With `Store.catchUp` alone: until then reads find one state.
  case manual
}
