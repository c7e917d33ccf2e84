import Foundation
import Testing

/// Names in the documents must exist.
@Suite("The documents")
struct DocumentTests {
  struct Document: Sendable, CustomTestStringConvertible {
    var path: String
    var text: String

    var testDescription: String { path }

    static let all: [Document] = {
      var paths = ["README.md", "CHANGELOG.md"]
      for folder in ["Docs", "Sources"] {
        let files = FileManager.default.enumerator(atPath: Source.root.appending(path: folder).path)
        for case let path as String in files ?? .init() where path.hasSuffix(".md") {
          if !path.contains(".build/") { paths.append("\(folder)/\(path)") }
        }
      }
      return paths.compactMap { path in
        let text = try? String(contentsOf: Source.root.appending(path: path), encoding: .utf8)
        return text.map { Document(path: path, text: $0) }
      }
    }()
  }

  /// The functions of each test type, by its name.
  private static let tests: [String: Set<String>] = {
    var tests: [String: Set<String>] = [:]
    for file in (try? Source.all(in: "Tests")) ?? [] {
      var type: String?
      for line in file.code {
        // Most lines are neither, which their first character shows.
        guard let first = line.first else { continue }
        if first != " " {
          guard let match = line.firstMatch(of: /^(?:struct|extension|final class|class) (\w+)/)
          else { continue }
          type = String(match.1)
          tests[String(match.1), default: []].formUnion([])
        } else if let type, line.hasPrefix("  func ") || line.hasPrefix("  static func "),
          let match = line.firstMatch(of: /^  (?:static )?func (\w+)/)
        {
          tests[type, default: []].insert(String(match.1))
        }
      }
    }
    return tests
  }()

  @Test("Every test that a document names exists", arguments: Document.all)
  func namedTests(document: Document) {
    for match in document.text.matches(of: /`(\w+Tests)(?:\.(\w+))?`/) {
      expectTest(match.1, match.2, in: document.path)
    }
  }

  @Test("Every test that a finding names exists")
  func testsOfFindings() throws {
    let path = "Fuzz/Findings.json"
    let text = try String(contentsOf: Source.root.appending(path: path), encoding: .utf8)
    let names = text.matches(of: /"shownBy": "(\w+Tests)(?:\.(\w+))?"/)
    #expect(names.count >= 40)
    for match in names { expectTest(match.1, match.2, in: path) }
  }

  private func expectTest(_ type: Substring, _ function: Substring?, in path: String) {
    guard let functions = Self.tests[String(type)] else {
      // A module of tests, or a suite.
      let folder = Source.root.appending(path: "Tests/\(type)").path
      if !FileManager.default.fileExists(atPath: folder) {
        Issue.record("\(path): there is no \(type)")
      }
      return
    }
    if let function, !functions.contains(String(function)) {
      Issue.record("\(path): \(type) has no \(function)")
    }
  }

  @Test("The table of long runs has the sums of Fuzz/Runs")
  func sumsOfRuns() throws {
    let script = Process()
    script.executableURL = URL(filePath: "/usr/bin/env")
    script.arguments = [
      "python3", Source.root.appending(path: "Fuzz/runs").path, "--check",
    ]
    try script.run()
    script.waitUntilExit()
    #expect(script.terminationStatus == 0)
  }

  @Test("Every link within the repository leads somewhere", arguments: Document.all)
  func links(document: Document) throws {
    let folder = Source.root.appending(path: document.path).deletingLastPathComponent()
    for link in document.links where !link.contains("://") {
      let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
      let path = parts[0].removingPercentEncoding ?? String(parts[0])
      // DocC checks its own links to pages and symbols.
      if path.hasPrefix("doc:") { continue }
      var target = document
      if !path.isEmpty {
        let url = folder.appending(path: path).standardizedFileURL
        guard FileManager.default.fileExists(atPath: url.path) else {
          Issue.record("\(document.path): there is no \(path)")
          continue
        }
        if parts.count == 1 { continue }
        target = Document(path: path, text: try String(contentsOf: url, encoding: .utf8))
      }
      if parts.count == 2 {
        #expect(target.anchors.contains(String(parts[1])), "\(document.path): \(link)")
      }
    }
  }

  /// A page that grows must make room: repetitions go, and figures of runs are data in `Fuzz/Runs`.
  /// The format has no limit, nor do decisions and examples.
  @Test("The documents stay short enough to be read")
  func wordCounts() {
    func wordCount(_ documents: [Document]) -> Int {
      documents.reduce(0) { $0 + $1.text.split(whereSeparator: \.isWhitespace).count }
    }
    let unlimited = ["Docs/FileFormat", "Docs/Decisions/", "Docs/Examples/"]
    let pages = Document.all.filter { document in
      document.path.hasPrefix("Docs/") && !unlimited.contains { document.path.hasPrefix($0) }
    }
    #expect(pages.count >= 10)
    #expect(wordCount(pages) <= 18_280)
    #expect(wordCount(Document.all.filter { $0.path == "README.md" }) <= 1_100)
  }

  @Test("The page on porting names what only Linux has")
  func porting() throws {
    let page = try #require(Document.all.first { $0.path == "Docs/Porting.md" }).text
    let names = /\b(?:MADV|F_OFD|CLOCK|SYS|FALLOC_FL|POSIX_FADV|RENAME|PTHREAD_MUTEX)_[A-Z_a-z0-9]+/
    var found: Set<Substring> = []
    for folder in ["CairnStore/Platform", "Cairn/Platform", "CCairn"] {
      let root = Source.root.appending(path: "Sources/\(folder)")
      for name in try FileManager.default.contentsOfDirectory(atPath: root.path)
      where name.hasSuffix(".swift") || name.hasSuffix(".c") {
        let text = try String(contentsOf: root.appending(path: name), encoding: .utf8)
        found.formUnion(text.matches(of: names).map(\.output))
      }
    }
    #expect(found.count > 10)
    for name in found {
      #expect(page.contains("`\(name)`"), "\(name)")
    }
  }

  @Test("Links and anchors are found as GitHub finds them")
  func linksOfText() {
    let document = Document(
      path: "",
      text: """
        # One *heading*, with `code()` & more
        ## Again
        ## Again
        A [link](a.md), ![one](b.svg "title"), [another](#again-1); no `[link](c.md)`.
        ```
        # [none](d.md)
        ```
        [by name]: e.md#x
        """)
    #expect(document.links == ["a.md", "b.svg", "#again-1", "e.md#x"])
    #expect(document.anchors == ["one-heading-with-code--more", "again", "again-1"])
  }
}

extension DocumentTests.Document {
  /// The lines that are not in a block of code.
  private var prose: [Substring] {
    var isInCode = false
    return text.split(separator: "\n", omittingEmptySubsequences: false).filter { line in
      if line.hasPrefix("```") {
        isInCode.toggle()
        return false
      }
      return !isInCode
    }
  }

  /// The targets of the document's links.
  var links: [String] {
    let code = /`[^`]*`/
    let inText = /\]\(([^)\s]+)[^)]*\)/
    let byName = /^\[[^\]]+\]: (\S+)/
    return prose.flatMap { line in
      let line = line.replacing(code, with: "")
      return line.matches(of: inText).map { String($0.1) }
        + line.matches(of: byName).map { String($0.1) }
    }
  }

  /// What links to the headings have after the "#": the heading in lower case, with only letters,
  /// digits, "-" and "_", spaces as "-", and a number if it occurs again.
  var anchors: Set<String> {
    var counts: [String: Int] = [:]
    for line in prose {
      guard let heading = line.firstMatch(of: /^#{1,6} (.+)$/) else { continue }
      let name = String(
        heading.1.lowercased().compactMap { character in
          if character == " " { return "-" }
          let stays =
            character.isLetter || character.isNumber || character == "-" || character == "_"
          return stays ? character : nil
        })
      counts[name, default: 0] += 1
    }
    return Set(
      counts.flatMap { name, count in [name] + (1..<count).map { "\(name)-\($0)" } })
  }
}
