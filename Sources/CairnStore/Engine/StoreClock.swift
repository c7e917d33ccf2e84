internal import Synchronization

/// The time of day as expiry sees it: the configured clock's, but not before the last time that
/// the store recorded, unless that leads by more than a day.
package final class StoreClock: Sendable {
  private static let trustedLead = Duration.seconds(86_400)

  private let clock: any WallClock
  private let earliest: Timestamp
  /// Whether the recorded time led by so much that it was ignored.
  package let wentBack: Bool

  package init(_ clock: any WallClock, lastRecorded: Timestamp) {
    self.clock = clock
    wentBack = lastRecorded > clock.now().advanced(by: Self.trustedLead)
    earliest = wentBack ? Timestamp(millisecondsSinceEpoch: .min) : lastRecorded
  }

  @inline(__always)
  package func now() -> Timestamp { max(clock.now(), earliest) }
}
