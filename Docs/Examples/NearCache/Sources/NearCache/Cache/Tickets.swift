import Synchronization

/// Whether a key was written since somebody asked the engine for it.
///
/// Who asks takes a ticket first. An invalidation, or an own write, makes the tickets of its key void before the near copy is
/// removed. An answer is kept only with a ticket that is valid still, and the look at it and the keeping are one step. Keys
/// share stripes: what is void for one is void for some others, whose answers are not kept either.
final class Tickets<Key: Hashable & Sendable>: Sendable {
  private final class Stripe: Sendable {
    let count = Mutex<UInt64>(0)
  }

  private let stripes = (0..<256).map { _ in Stripe() }

  private func stripe(of key: Key) -> Stripe { stripes[key.hashValue & 255] }

  /// A ticket for a key, to be taken before the engine is asked.
  func ticket(for key: Key) -> UInt64 { stripe(of: key).count.withLock { $0 } }

  /// Makes the tickets of a key void, before its near copy is removed.
  func void(_ key: Key) { stripe(of: key).count.withLock { $0 += 1 } }

  /// The same for all keys.
  func voidAll() { for stripe in stripes { stripe.count.withLock { $0 += 1 } } }

  /// Runs `body`, which keeps an answer, if the ticket is valid.
  func keep(_ key: Key, _ ticket: UInt64, _ body: () -> Void) {
    stripe(of: key).count.withLock { if $0 == ticket { body() } }
  }
}
