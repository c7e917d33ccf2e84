import Cairn
import Foundation
import Testing

@Suite("The README")
struct ReadmeExampleTests {
  @Test("Its example does what its comments say")
  func example() throws {
    let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
    defer { try? FileManager.default.removeItem(atPath: path) }

    let store = try Store(path: path)
    try store.setValue("alice", forKey: "session/1", lifetime: .seconds(3600))
    let user = try store.value(forKey: "session/1")
    let length = try store.withValue(forKey: "session/1") { $0.byteCount }
    try store.write { batch in
      try batch.setValue("1", forKey: "counter")
      try batch.removeValue(forKey: "session/0")
    }
    var keys: [[UInt8]] = []
    try store.forEachKey(prefix: Array("session/".utf8)) { key in
      keys.append([UInt8](copying: key))
      return .next
    }
    try store.close()

    #expect(user == Array("alice".utf8))
    #expect(length == 5)
    #expect(keys == [Array("session/1".utf8)])
  }

  @Test("Its example is this code")
  func text() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
    let here = try String(contentsOf: URL(filePath: #filePath), encoding: .utf8)
    let block = try #require(readme.components(separatedBy: "```swift\n").dropFirst().first)
    let code = try #require(block.components(separatedBy: "```").first)
    for line in code.split(separator: "\n") {
      var line = line.trimmingCharacters(in: .whitespaces)
      if let comment = line.range(of: "  ", options: .backwards), line.contains("//") {
        line = String(line[..<comment.lowerBound]).trimmingCharacters(in: .whitespaces)
      }
      if let comment = line.range(of: "//") {
        line = String(line[..<comment.lowerBound]).trimmingCharacters(in: .whitespaces)
      }
      // The path and the closure of the iteration are the test's own.
      if line.isEmpty || line.hasPrefix("let store") || line.hasPrefix("try store.forEachKey") {
        continue
      }
      #expect(here.contains(line), "\(line)")
    }
  }
}
