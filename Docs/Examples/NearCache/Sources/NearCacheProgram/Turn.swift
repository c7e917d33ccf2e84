import Synchronization

/// Numbers from 0 to `count` − 1, in turn.
final class Turn: Sendable {
  private let number = Atomic(0)

  func take(_ count: Int) -> Int {
    number.add(1, ordering: .relaxed).oldValue % count
  }
}
