import Testing

@testable import Cairn

@Suite("What is remembered of loads")
struct LoadHistoryTests {
  @Test("If there are too many keys, each new one takes the place of one other")
  func full() {
    let history = LoadHistory<Int>()
    for key in 0..<150_000 { history.change(key) { $0.absenceEnd = 1000 } }
    #expect((0..<150_000).count { history.record($0) != nil } == 16 * 4096)
    #expect(history.record(149_999) != nil)
  }

  @Test("A removal of a tag ends the absences with the tag, and no others")
  func tag() {
    let history = LoadHistory<Int>()
    for key in 0..<100 {
      history.change(key) {
        $0.absenceEnd = 1000
        $0.tags = key % 2 == 0 ? ["even", "number"] : ["number"]
      }
    }
    history.forget(tag: "even")
    for key in 0..<100 { #expect((history.record(key) == nil) == (key % 2 == 0)) }
    history.forget(tag: "number")
    #expect(history.isEmpty)
  }
}
