import CairnStore
import FuzzSupport
import Testing

/// What followers record: a correct one, and wrong ones.
@Suite("The check of what followers see")
struct FollowedCheckTests {
  private let history = FollowedHistory(seed: 1)

  /// The number of the first operation of a kind, from a number on.
  private func number(
    from start: Int, _ isWanted: (FollowedHistory.Operation) -> Bool
  ) -> Int {
    (start...).first { isWanted(history.operation($0)) } ?? 0
  }

  private func timeline(_ numbers: [Int], removed: [Int] = []) -> FollowedTimeline {
    var timeline = FollowedTimeline()
    for number in numbers {
      timeline.append(
        number, of: history, FollowedHistory.Outcome(isApplied: true, removed: removed))
    }
    return timeline
  }

  private func read(
    _ key: Int, _ number: Int, version: UInt64 = 1, done: Int = 0
  ) -> FollowedEvent {
    FollowedEvent(
      .read, key: key, done: done, begun: 1 << 20, number: number,
      version: number == 0 ? 0 : UInt64(number) * 100 + version)
  }

  private func isExplained(
    _ events: [FollowedEvent], _ timeline: FollowedTimeline, replacement: Int? = nil
  ) -> Bool {
    var check = FollowedCheck(timeline, replacement: replacement)
    do { try check.check(events) } catch { return false }
    return true
  }

  /// Two puts of different keys, in order.
  private func puts() -> (first: Int, second: Int, a: Int, b: Int) {
    var found: [(number: Int, key: Int)] = []
    var number = 1
    while found.count < 2 {
      if case .put(let key) = history.operation(number), found.first?.key != key {
        found.append((number, key))
      }
      number += 1
    }
    return (found[0].number, found[1].number, found[0].key, found[1].key)
  }

  @Test("States come in the order of the writer, across keys too")
  func order() {
    let (first, second, a, b) = puts()
    let timeline = timeline([first, second])
    #expect(isExplained([read(a, 0), read(a, first), read(b, 0), read(b, second)], timeline))
    #expect(isExplained([read(b, second), read(a, first)], timeline))
    #expect(!isExplained([read(a, first), read(a, 0)], timeline))
    // The second write was seen, so the first one exists.
    #expect(!isExplained([read(b, second), read(a, 0)], timeline))
    // The value of an operation that was lost with its process.
    #expect(!isExplained([read(b, second)], self.timeline([first])))
    #expect(!isExplained([read(a, 0, done: first)], timeline))
    #expect(
      !isExplained([FollowedEvent(.caughtUp, done: first), read(a, 0)], timeline))
    let early = FollowedEvent(.read, key: b, begun: first, number: second, version: 3)
    #expect(!isExplained([early], timeline))
    #expect(!isExplained([read(a, first, version: 3), read(a, first, version: 2)], timeline))
  }

  @Test("A view is of one moment")
  func views() {
    let (first, second, a, b) = puts()
    let timeline = timeline([first, second])
    let (view, end) = (FollowedEvent(.view), FollowedEvent(.endOfView))
    #expect(isExplained([view, read(a, first), read(b, 0), end, read(b, second)], timeline))
    #expect(!isExplained([view, read(a, 0), read(b, second), end], timeline))
    // These reads are correct only across two moments.
    #expect(isExplained([read(a, 0), read(b, second)], timeline))
    // A view must not show half of a batch.
    let number = number(from: 1) { if case .batch = $0 { true } else { false } }
    guard case .batch(let changes) = history.operation(number) else { return }
    let batch = self.timeline([number])
    let keys = changes.filter { !$0.isRemoval }.map(\.key)
    #expect(isExplained([view] + keys.map { read($0, number) } + [end], batch))
    if keys.count > 1 {
      #expect(!isExplained([view, read(keys[0], number), read(keys[1], 0), end], batch))
    }
  }

  @Test("A trim may be seen partly, and is complete once it was acknowledged")
  func trims() {
    let (first, second, a, b) = puts()
    let trim = number(from: second + 1) { if case .trim = $0 { true } else { false } }
    let timeline = timeline([first, second, trim], removed: [a, b])
    #expect(isExplained([read(a, 0, done: second), read(b, second), read(b, 0)], timeline))
    #expect(isExplained([read(b, 0, done: second), read(a, first), read(a, 0)], timeline))
    #expect(!isExplained([read(a, 0, done: second), read(a, first)], timeline))
    #expect(!isExplained([read(a, 0, done: trim), read(b, second)], timeline))
  }

  @Test("Another store in place of the first is reported once, and only then")
  func replacement() {
    let (first, second, a, b) = puts()
    var timeline = timeline([first])
    let number = second
    timeline.empty(by: number)
    let opened = FollowedEvent(.opened, done: first, begun: first)
    let (outdated, end) = (FollowedEvent(.outdated, begun: number), FollowedEvent(.end))
    let right = [opened, read(a, first, done: number), outdated, read(a, 0), end]
    #expect(isExplained(right, timeline, replacement: number))
    #expect(!isExplained([opened, read(a, first), end], timeline, replacement: number))
    #expect(
      !isExplained([opened, read(a, first), read(a, 0)], timeline, replacement: number))
    #expect(
      !isExplained([opened, outdated, read(a, first)], timeline, replacement: number))
    #expect(!isExplained([opened, outdated], self.timeline([first])))
    #expect(
      isExplained(
        [FollowedEvent(.opened, done: number, begun: number), read(b, 0), read(a, 0), end],
        timeline, replacement: number))
  }

  @Test("A value identifies the operation that wrote it, and no other value is accepted")
  func values() throws {
    let value = history.value(7, forKey: 3, inBatch: false)
    #expect(try history.number(of: value, forKey: 3) == 7)
    #expect(throws: FuzzFailure.self) { try history.number(of: value, forKey: 4) }
    #expect(throws: FuzzFailure.self) { try history.number(of: Array(value.dropLast()), forKey: 3) }
    let outcome = FollowedHistory.Outcome(isApplied: true, removed: [0, 5, 23])
    #expect(FollowedHistory.Outcome(word: outcome.word) == outcome)
  }
}
