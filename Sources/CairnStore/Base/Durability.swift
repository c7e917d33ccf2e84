/// What an acknowledged write survives. Each class includes those above it.
///
/// A write is acknowledged when the call that made it returns. Reads may see a write before it
/// is durable. See <doc:ChoosingADurability>.
public enum Durability: Sendable, Hashable {
  /// The death of the process, even by SIGKILL, but not of the machine.
  ///
  /// The bytes are in the kernel's page cache when the call returns. Most writes make no system
  /// call.
  case process

  /// The death of the process and, except for writes of the last interval, a power cut.
  ///
  /// A background sync follows at most this long after a write. In a configuration, the duration
  /// must be positive. For a single write, zero or less requests a sync at once but does not wait
  /// for it.
  case interval(Duration)

  /// A power cut.
  ///
  /// The call returns after `fdatasync`. Concurrent writers share one sync (group commit), so
  /// throughput grows with the number of writing threads.
  case durable
}
