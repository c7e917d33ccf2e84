/// What an acknowledged write survives. Each class includes those above it.
///
/// A write is acknowledged when its call returns. Reads may see a write before it is durable. See
/// <doc:ChoosingADurability>.
public enum Durability: Sendable, Hashable {
  /// The death of the process, even by SIGKILL, but not of the machine.
  ///
  /// When the call returns, the bytes are in the kernel's page cache. Most writes make no system
  /// call.
  case process

  /// The death of the process and, except for writes of the last interval, a power cut.
  ///
  /// A background sync follows each write within this time. In a configuration, the duration must
  /// be positive. For a single write, zero or less starts a sync at once, but the call does not
  /// wait for the sync.
  case interval(Duration)

  /// A power cut.
  ///
  /// The call returns after a sync (`fdatasync`). Concurrent writers share syncs (group commit), so
  /// throughput grows with the number of writing threads and tasks.
  case durable
}
