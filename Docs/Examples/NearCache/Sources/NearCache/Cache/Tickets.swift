import Synchronization

/// Shows whether a key was written since a request to the engine.
///
/// A caller takes a ticket before its request. An invalidation, or the machine's own write, voids
/// the tickets of its key before the near copy is removed. An answer is kept only if its ticket is
/// still valid; checking the ticket and keeping the answer are one step. Keys share stripes, so
/// voiding the tickets of one key also voids those of some others. Their answers are then not kept
/// either.
final class Tickets<Key: Hashable & Sendable>: Sendable {
  private final class Stripe: Sendable {
    let count = Mutex<UInt64>(0)
  }

  private let stripes = (0..<256).map { _ in Stripe() }

  private func stripe(of key: Key) -> Stripe { stripes[key.hashValue & 255] }

  /// Returns a ticket for a key. Call before the request to the engine.
  func ticket(for key: Key) -> UInt64 { stripe(of: key).count.withLock { $0 } }

  /// Voids the tickets of a key. Call before removing its near copy.
  func void(_ key: Key) { stripe(of: key).count.withLock { $0 += 1 } }

  /// Voids the tickets of all keys.
  func voidAll() { for stripe in stripes { stripe.count.withLock { $0 += 1 } } }

  /// Calls `body`, which keeps an answer, if the ticket is valid.
  func keep(_ key: Key, _ ticket: UInt64, _ body: () -> Void) {
    stripe(of: key).count.withLock { if $0 == ticket { body() } }
  }
}
