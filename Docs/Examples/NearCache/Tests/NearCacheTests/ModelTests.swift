import NearCacheTrial
import Testing

/// Tests that the model detects violations.
@Suite("The model")
struct ModelTests {
  private static let second: Int64 = 1_000_000_000

  /// Number 1 is written and acknowledged at 1 s, number 2 at 2 s.
  private static let writes: [Event] = [1, 2].flatMap { number in
    [Event.Kind.begun, .acknowledged].map { kind in
      Event(
        kind: kind, process: 0, key: 5, number: number, start: number * second - 10,
        end: number * second)
    }
  }

  private func violations(_ read: Event, more: [Event] = []) -> Int {
    Model.check(
      Self.writes + more + [read], stalenessLimit: .seconds(1), staleLimit: .seconds(10)
    ).violations.count
  }

  private func read(
    _ number: Int64, at start: Double, process: Int = 1, isStale: Bool = false, fence: Double = 0
  ) -> Event {
    Event(
      kind: .read, process: process, key: 5, number: number, start: Int64(start * 1e9),
      end: Int64(start * 1e9) + 5, isStale: isStale, fence: Int64(fence * 1e9))
  }

  @Test("A read may be as old as promised")
  func staleness() {
    #expect(violations(read(1, at: 2.9)) == 0)
    #expect(violations(read(1, at: 3.1)) == 1)
    #expect(violations(read(2, at: 3.1)) == 0)
    #expect(violations(read(0, at: 3.1)) == 1)
    #expect(violations(read(1, at: 3.1, isStale: true)) == 0)
    #expect(violations(read(1, at: 12.1, isStale: true)) == 1)
  }

  @Test("A read may not be older than a catchUp or the machine's own write")
  func fences() {
    #expect(violations(read(1, at: 2.2, fence: 2.1)) == 1)
    #expect(violations(read(1, at: 2.2, isStale: true, fence: 2.1)) == 1)
    #expect(violations(read(1, at: 2.2, fence: 1.9)) == 0)
    #expect(violations(read(1, at: 2.2, process: 0)) == 1)
    #expect(violations(read(2, at: 2.2, process: 0)) == 0)
  }

  @Test("A value must not be read before it is written")
  func invented() {
    #expect(violations(read(3, at: 2.2)) == 1)
    #expect(violations(read(2, at: 1.5)) == 1)
  }

  @Test("An unacknowledged write may be read at any time")
  func unacknowledged() {
    let begun = Event(kind: .begun, process: 0, key: 5, number: 3, start: 100, end: 0)
    #expect(violations(read(3, at: 9), more: [begun]) == 0)
  }
}
