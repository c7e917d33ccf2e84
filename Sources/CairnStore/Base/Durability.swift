/// What an acknowledged write survives. Each class includes those above it.
///
/// A write is acknowledged when the call that made it returns. Reads may see a write before it
/// is durable. See <doc:ChoosingADurability>.
public enum Durability: Sendable, Hashable {
  /// The death of the process, SIGKILL included, but not of the machine.
  ///
  /// The bytes are in the kernel's page cache when the call returns. No system call is made for
  /// most writes.
  case process

  /// The death of the process and, but for writes of the last interval, power loss.
  ///
  /// A background sync follows at most this long after a write. In a configuration the duration must be
  /// positive; with one write, zero or less asks for the sync at once, and does not wait for it.
  case interval(Duration)

  /// Power loss.
  ///
  /// The call returns after `fdatasync`. Writers that wait at the same time share one (group
  /// commit), so throughput grows with the number of writing threads.
  case durable
}
