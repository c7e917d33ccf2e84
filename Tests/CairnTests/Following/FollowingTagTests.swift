import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Tags in a following cache", .timeLimit(.minutes(30)))
struct FollowingTagTests {
  @Test("A follower finds what the writer finds", arguments: [nil, Int.max])
  func following(held: Int?) throws {
    let scene = FollowingScene()
    let writer = try scene.writer()
    try writer.setValue("1", forKey: "a", options: .tags(["x"]))
    try writer.setValue("2", forKey: "b", options: .tags(["y"]))
    try writer.setValue("3", forKey: "c")
    let follower = try scene.follower(held: held)
    for _ in 0..<2 { #expect(try follower.values(forKeys: ["a", "b", "c"]) == ["1", "2", "3"]) }
    try writer.removeAll(tagged: "x")
    for isSwept in [false, true] {
      if isSwept { try writer.maintain() }
      try expectAbsentToFollower("a", follower)
      #expect(try follower.values(forKeys: ["b", "c"]) == ["2", "3"])
      #expect(try follower.keys().sorted() == ["b", "c"])
      #expect(try follower.statistics()["sweepingTags"] == (isSwept ? 0 : 1))
    }
    #expect(try follower.count() == 2)
    try writer.setValue("4", forKey: "a", options: .tags(["x"]))
    #expect(try follower.value(forKey: "a") == "4")
    #expect(try follower.keys(tagged: "x") == ["a"])
  }

  private func expectAbsentToFollower(
    _ key: String, _ cache: DiskCache<String, String>
  ) throws {
    #expect(try cache.value(forKey: key) == nil)
    #expect(try cache.memory?.value(forKey: key) == nil)
    #expect(try cache.memory?.contains(key) != true)
    #expect(try cache.peekValue(forKey: key) == nil)
    #expect(try !cache.contains(key))
    #expect(try cache.info(forKey: key) == nil)
    #expect(try cache.entry(forKey: key) == nil)
  }
}
