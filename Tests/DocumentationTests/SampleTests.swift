import Foundation
import Testing

/// Swift code in the documents must be code that runs: each sample appears in a file beside this
/// one, inside a test, or in the tests of an example if it needs code of that package.
@Suite("The samples of the documents")
struct SampleTests {
  struct Sample: Sendable, CustomTestStringConvertible {
    var document: String
    /// The number of the sample in the document, from 1.
    var number: Int
    var imports: [String]
    /// Without spaces and the ends of lines, which the formatter may change.
    var code: String

    var testDescription: String { "\(document), \(number)" }
  }

  private static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// The documents with samples, by their paths.
  static let documents: [String: String] = {
    var documents: [String: String] = [:]
    func add(_ path: String) {
      documents[path] = try? String(contentsOf: root.appending(path: path), encoding: .utf8)
    }
    add("README.md")
    for folder in [
      "Docs", "Sources/Cairn/Cairn.docc", "Sources/CairnStore/CairnStore.docc",
      "Sources/CairnRepair/CairnRepair.docc",
    ] {
      let files = FileManager.default.enumerator(atPath: root.appending(path: folder).path)
      for case let path as String in files ?? .init() where path.hasSuffix(".md") {
        if !path.contains(".build/") { add("\(folder)/\(path)") }
      }
    }
    return documents
  }()

  static let samples = documents.sorted { $0.key < $1.key }.flatMap { path, text in
    blocks(in: text).enumerated().map { index, lines in
      let imports = lines.filter { $0.hasPrefix("import ") }
      let code = lines.filter { !$0.hasPrefix("import ") }.joined(separator: "\n")
      return Sample(
        document: path, number: index + 1, imports: imports, code: withoutSpaces(code))
    }
  }

  /// The files of samples, without spaces.
  private static let files: [(imports: Set<String>, code: String)] = {
    let folders = [
      URL(filePath: #filePath).deletingLastPathComponent(),
      root.appending(path: "Docs/Examples/NearCache/Tests/NearCacheTests"),
    ]
    let files = folders.flatMap { folder in
      let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
      return names.map { folder.appending(path: $0) }
    }
    return files.filter { $0.path.hasSuffix("Samples.swift") }.compactMap { file in
      guard let text = try? String(contentsOf: file, encoding: .utf8) else { return nil }
      let lines = text.split(separator: "\n").map(String.init)
      return (Set(lines.filter { $0.hasPrefix("import ") }), withoutSpaces(text))
    }
  }()

  /// The lines of each block that is marked as Swift.
  private static func blocks(in text: String) -> [[String]] {
    var blocks: [[String]] = []
    var block: [String]?
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
      if let lines = block {
        if line.hasPrefix("```") {
          blocks.append(lines)
          block = nil
        } else {
          block = lines + [line]
        }
      } else if line.hasPrefix("```swift") {
        block = []
      }
    }
    return blocks
  }

  private static func withoutSpaces(_ text: String) -> String {
    String(text.filter { !$0.isWhitespace })
  }

  @Test("Each sample appears in a test", arguments: samples)
  func isRun(sample: Sample) {
    #expect(!sample.code.isEmpty)
    let holders = Self.files.filter { $0.code.contains(sample.code) }
    #expect(!holders.isEmpty, "no file of samples has it")
    #expect(holders.contains { $0.imports.isSuperset(of: sample.imports) })
  }

  /// The last step consists of declarations that are run. Each other step is the last one with
  /// lines left out.
  @Test("The steps of the tutorial appear in a test, and each adds to the one before")
  func tutorial() throws {
    let steps = try (1...10).map { step in
      let name = "Docs/Site/Tutorials/PageCache-\(step < 10 ? "0" : "")\(step).swift"
      return try String(contentsOf: Self.root.appending(path: name), encoding: .utf8)
    }
    let last = try #require(steps.last)
    for declaration in last.split(separator: "\n}\n").map({ $0 + "\n}" }) {
      let lines = declaration.split(separator: "\n").filter { !$0.hasPrefix("import ") }
      let code = Self.withoutSpaces(lines.joined())
      #expect(Self.files.contains { $0.code.contains(code) }, "\(declaration)")
    }
    for (step, next) in zip(steps, steps.dropFirst()) {
      var rest = next.split(separator: "\n")[...]
      for line in step.split(separator: "\n") {
        let place = try #require(rest.firstIndex(of: line), "\(line)")
        rest = rest[rest.index(after: place)...]
      }
      #expect(step.count < next.count)
    }
  }

  @Test("The samples are found")
  func found() {
    for document in [
      "README.md", "Docs/Scaling.md", "Sources/Cairn/Cairn.docc/GettingStarted.md",
      "Sources/Cairn/Cairn.docc/LoadingAndSingleFlight.md",
      "Sources/Cairn/Cairn.docc/LimitsAndTrimming.md", "Sources/Cairn/Cairn.docc/Concurrency.md",
      "Sources/Cairn/Cairn.docc/Errors.md", "Sources/Cairn/Cairn.docc/Migrating.md",
      "Sources/Cairn/Cairn.docc/Recipes.md",
      "Sources/CairnStore/CairnStore.docc/CairnStore.md",
      "Sources/CairnStore/CairnStore.docc/ChoosingADurability.md",
      "Sources/CairnRepair/CairnRepair.docc/CairnRepair.md",
    ] {
      #expect(Self.samples.contains { $0.document == document }, "\(document)")
    }
  }
}
