import CairnSharding
import Testing

@Suite("The map of shards")
struct ShardMapTests {
  private let disks = (1...8).map { "/disk\($0)" }

  private func places(_ names: [String]) -> [String] {
    let map = ShardMap(places: names)
    return (0..<256).map(map.place(ofShard:))
  }

  @Test("A key has the same shard, and a shard the same place, in every process")
  func constants() {
    let map = ShardMap(places: Array(disks[..<3]))
    // Computed by another program.
    #expect(["user/17", "", "a", "naïve"].map(map.shard(forKey:)) == [37, 38, 91, 207])
    #expect(
      (0..<6).map(map.place(ofShard:)) == [
        "/disk3", "/disk3", "/disk1", "/disk3", "/disk3", "/disk3",
      ])
    #expect(places(disks) == places(disks.reversed()))
  }

  @Test("A new place takes shards from all others, and no other shard moves")
  func addition() {
    for count in 1..<8 {
      let before = places(Array(disks[..<count]))
      let after = places(Array(disks[...count]))
      let moved = (0..<256).filter { before[$0] != after[$0] }
      #expect(moved.allSatisfy { after[$0] == disks[count] })
      #expect(Set(moved.map { before[$0] }) == Set(disks[..<count]))
      // The new place's share, plus or minus half.
      let share = 256 / (count + 1)
      #expect((share / 2...share * 3 / 2).contains(moved.count))
    }
  }

  @Test("A removed place leaves its shards to all others, and no other shard moves")
  func removal() {
    let before = places(disks)
    for gone in disks {
      let after = places(disks.filter { $0 != gone })
      let moved = (0..<256).filter { before[$0] != after[$0] }
      #expect(moved == (0..<256).filter { before[$0] == gone })
      #expect(Set(moved.map { after[$0] }).count >= 4)
    }
  }

  @Test("Keys are spread evenly over shards, and shards over places")
  func balance() {
    let map = ShardMap(places: disks)
    var keys = [Int](repeating: 0, count: 256)
    for number in 0..<100_000 { keys[map.shard(forKey: "user/\(number)")] += 1 }
    // The mean is 391. Five standard deviations of a fair draw are 99.
    #expect(keys.allSatisfy { (292...490).contains($0) })
    let shards = Dictionary(grouping: 0..<256, by: map.place(ofShard:)).mapValues(\.count)
    // The mean is 32. Five standard deviations are 26.
    #expect(shards.count == 8)
    #expect(shards.values.allSatisfy { (6...58).contains($0) })
  }
}
