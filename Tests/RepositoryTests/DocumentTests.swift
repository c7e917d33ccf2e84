import Foundation
import Testing

/// What the documents name must be there.
@Suite("The documents")
struct DocumentTests {
  struct Document: Sendable, CustomTestStringConvertible {
    var path: String
    var text: String

    var testDescription: String { path }

    static let all: [Document] = {
      var paths = ["README.md", "CHANGELOG.md"]
      let docs = FileManager.default.enumerator(atPath: Source.root.appending(path: "Docs").path)
      for case let path as String in docs ?? .init() where path.hasSuffix(".md") {
        if !path.contains(".build/") { paths.append("Docs/\(path)") }
      }
      return paths.compactMap { path in
        let text = try? String(contentsOf: Source.root.appending(path: path), encoding: .utf8)
        return text.map { Document(path: path, text: $0) }
      }
    }()
  }

  /// The functions of each type of the tests, by its name.
  private static let tests: [String: Set<String>] = {
    var tests: [String: Set<String>] = [:]
    for file in (try? Source.all(in: "Tests")) ?? [] {
      var type: String?
      for line in file.code {
        if let match = line.firstMatch(of: /^(?:struct|extension|final class|class) (\w+)/) {
          type = String(match.1)
          tests[String(match.1), default: []].formUnion([])
        } else if let type, let match = line.firstMatch(of: /^  (?:static )?func (\w+)/) {
          tests[type, default: []].insert(String(match.1))
        }
      }
    }
    return tests
  }()

  @Test("Every test that a document names is there", arguments: Document.all)
  func namedTests(document: Document) {
    for match in document.text.matches(of: /`(\w+Tests)(?:\.(\w+))?`/) {
      let type = String(match.1)
      guard let functions = Self.tests[type] else {
        // A module of tests, or a suite.
        let folder = Source.root.appending(path: "Tests/\(type)").path
        if !FileManager.default.fileExists(atPath: folder) {
          Issue.record("\(document.path): there is no \(type)")
        }
        continue
      }
      if let function = match.2.map(String.init), !functions.contains(function) {
        Issue.record("\(document.path): \(type) has no \(function)")
      }
    }
  }

  @Test("Every link within the repository leads somewhere", arguments: Document.all)
  func links(document: Document) {
    let folder = Source.root.appending(path: document.path).deletingLastPathComponent()
    for match in document.text.matches(of: /\]\(([^)#\s]+)[^)]*\)/) {
      let target = String(match.1)
      if target.contains("://") { continue }
      let path = folder.appending(path: target).path
      #expect(FileManager.default.fileExists(atPath: path), "\(document.path): \(target)")
    }
  }
}
