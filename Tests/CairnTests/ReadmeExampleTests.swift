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

  private struct Page: Codable, Sendable, Equatable {
    var title: String
  }

  @Test("Its example of a cache does what its comments say")
  func cache() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
    defer { try? FileManager.default.removeItem(atPath: path) }
    let url = "/contact"
    let about = Page(title: "About")
    @Sendable func fetch(_ url: String) async throws -> Page { Page(title: url) }

    let configuration = TieredCacheConfiguration(
      memory: MemoryCacheConfiguration(countLimit: nil, costLimit: 64 << 20),
      disk: DiskCacheConfiguration(countLimit: 100_000, byteLimit: 1 << 30))
    let pages = try TieredCache<String, Page>(path: path, configuration: configuration)
    let page = try await pages.value(forKey: url, lifetime: .seconds(3600)) { try await fetch(url) }
    pages["/about"] = about
    let known = try pages.value(forKey: "/about")

    #expect(page.title == url)
    #expect(known == about)
    #expect(try pages.count() == 2)
    try pages.close()
  }

  @Test("Its examples are this code")
  func text() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
    let here = try String(contentsOf: URL(filePath: #filePath), encoding: .utf8)
    let blocks = readme.components(separatedBy: "```swift\n").dropFirst()
    #expect(blocks.count == 2)
    let code = blocks.compactMap { $0.components(separatedBy: "```").first }.joined(separator: "\n")
    for line in code.split(separator: "\n") {
      var line = line.trimmingCharacters(in: .whitespaces)
      if let comment = line.range(of: "  ", options: .backwards), line.contains("//") {
        line = String(line[..<comment.lowerBound]).trimmingCharacters(in: .whitespaces)
      }
      if let comment = line.range(of: "//") {
        line = String(line[..<comment.lowerBound]).trimmingCharacters(in: .whitespaces)
      }
      // The paths and the closure of the iteration are the test's own.
      let others = ["let store", "let pages", "try store.forEachKey"]
      if line.isEmpty || others.contains(where: line.hasPrefix) { continue }
      #expect(here.contains(line), "\(line)")
    }
  }
}
