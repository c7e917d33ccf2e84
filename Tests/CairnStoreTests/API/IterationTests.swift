import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Iterating")
struct IterationTests {
  let directory: TemporaryDirectory
  let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try Store(directory.store)
    for number in 0..<100 {
      try store.setValue("\(number)", forKey: number < 50 ? "a\(number)" : "b\(number)")
    }
  }

  func keys(prefix: String = "") throws -> [String] {
    var keys: [String] = []
    try store.forEachKey(prefix: prefix) { key in
      keys.append(String(decoding: key.copied(), as: UTF8.self))
      return .next
    }
    return keys.sorted()
  }

  @Test("Every key is visited once")
  func all() throws {
    #expect(try keys() == ((0..<50).map { "a\($0)" } + (50..<100).map { "b\($0)" }).sorted())
  }

  @Test("Only keys with the prefix are visited")
  func prefix() throws {
    #expect(try keys(prefix: "a").count == 50)
    #expect(try keys(prefix: "a1") == (["a1"] + (10..<20).map { "a\($0)" }).sorted())
    #expect(try keys(prefix: "c") == [])
    #expect(try keys(prefix: "a1extra") == [])
  }

  @Test("Iteration ends when the closure stops it")
  func stop() throws {
    var visits = 0
    try store.forEachKey { _ in
      visits += 1
      return visits == 7 ? .stop : .next
    }
    #expect(visits == 7)
    visits = 0
    try store.forEachEntry { _ in
      visits += 1
      return .stop
    }
    #expect(visits == 1)
  }

  @Test("The closure's error comes out unchanged")
  func error() {
    #expect(throws: WithValueTests.OwnError(number: 3)) {
      try store.forEachKey { _ in throw WithValueTests.OwnError(number: 3) }
    }
    #expect(throws: WithValueTests.OwnError(number: 4)) {
      try store.forEachEntry { _ in throw WithValueTests.OwnError(number: 4) }
    }
  }

  @Test("Entries contain what a read returns")
  func entries() throws {
    try store.setValue("v", forKey: "c", options: EntryOptions(cost: 9, metadata: [1, 2]))
    try store.forEachEntry(prefix: [UInt8(ascii: "c")]) { entry in
      #expect(entry.key == [UInt8(ascii: "c")])
      #expect(entry.value == [118])
      #expect(entry.metadata == [1, 2])
      #expect(entry.info.cost == 9)
      return .next
    }
  }

  @Test("Writes do not disturb an iteration: what stays is visited exactly once")
  func writes() throws {
    var visits: [String: Int] = [:]
    var added = 0
    try store.forEachKey { key in
      let name = String(decoding: key.copied(), as: UTF8.self)
      visits[name, default: 0] += 1
      if name.hasPrefix("a") {
        try store.setValue("changed", forKey: name)
      } else if name.hasPrefix("b") {
        try store.removeValue(forKey: name)
        added += 1
        try store.setValue("new", forKey: "c\(added)")
      }
      return .next
    }
    for number in 0..<50 { #expect(visits["a\(number)"] == 1) }
    #expect(visits.values.allSatisfy { $0 == 1 })
    #expect(try keys(prefix: "b") == [])
    #expect(try keys(prefix: "a").count == 50)
  }

  @Test("Removing everything during an iteration ends in an empty store")
  func removeAll() throws {
    try store.forEachEntry { _ in
      try store.removeAll()
      return .next
    }
    #expect(try store.count() == 0)
  }

  @Test("An iteration in a store that is closed inside throws closed")
  func closeInside() {
    #expect(throws: StoreError.closed(path: directory.store)) {
      try store.forEachKey { _ in
        try store.close()
        return .next
      }
    }
  }
}
