import Foundation
import Testing

/// The mistakes of Fuzz/Mutations, which Fuzz/mutate weaves into a copy of the sources.
@Suite("The mutations")
struct MutationTests {
  static let all: [Mutation] = {
    let folder = Source.root.appending(path: "Fuzz/Mutations")
    let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
    return (files?.allObjects as? [URL] ?? []).filter { $0.pathExtension == "mutation" }
      .map { Mutation($0) }.sorted { $0.name < $1.name }
  }()

  @Test("Each mutation says why somebody might make the mistake, and what finds it")
  func heads() {
    #expect(Self.all.count >= 180)
    for mutation in Self.all {
      #expect(mutation.head.count == 2, "\(mutation.name)")
      #expect(mutation.head.first?.hasSuffix(".") == true, "\(mutation.name)")
      #expect(mutation.head.last?.hasPrefix("found by: ") == true, "\(mutation.name)")
      #expect(mutation.hunks.isEmpty == mutation.name.hasPrefix("Files/"), "\(mutation.name)")
    }
  }

  @Test("Each hunk applies to one place, and no two to the same except as alternatives")
  func places() throws {
    let hunks = Self.all.flatMap { mutation in mutation.hunks.map { (mutation.name, $0) } }
    for (path, hunks) in Dictionary(grouping: hunks, by: \.1.path) {
      let text = try String(contentsOf: Source.root.appending(path: path), encoding: .utf8)
      var places: [(range: Range<String.Index>, name: String, hunk: Mutation.Hunk)] = []
      for (name, hunk) in hunks {
        let ranges = text.ranges(of: hunk.before)
        #expect(
          ranges.count == 1, "\(name): found \(ranges.count) times in \(path): \(hunk.before)")
        #expect(hunk.before != hunk.after, "\(name) changes nothing in \(path)")
        if let range = ranges.first { places.append((range, name, hunk)) }
      }
      places.sort { $0.range.lowerBound < $1.range.lowerBound }
      for (one, other) in zip(places, places.dropFirst())
      where one.range.upperBound > other.range.lowerBound {
        let areAlternatives =
          one.range == other.range && one.name != other.name
          && ![one, other].contains { $0.hunk.after.contains("MISTAKEN") }
        #expect(areAlternatives, "\(one.name) and \(other.name) overlap in \(path)")
      }
    }
  }

  @Test("The sources contain no deliberate mistakes")
  func sources() throws {
    for file in try Source.all(in: "Sources") {
      for line in file.code {
        #expect(!line.contains("planted") && !line.contains("MISTAKEN"), "\(file.name): \(line)")
      }
    }
  }
}

/// A file of Fuzz/Mutations. The script describes its contents.
struct Mutation {
  struct Hunk {
    var path: String
    var before: String
    var after: String
  }

  /// With the folder, and without the extension.
  var name: String
  var head: [String] = []
  var hunks: [Hunk] = []

  init(_ url: URL) {
    name = url.deletingPathExtension().pathComponents.suffix(2).joined(separator: "/")
    var before: [String] = []
    var after: [String]?
    var path: String?
    func close(_ mutation: inout Mutation) {
      guard let path else { return }
      let text = (after ?? []).joined(separator: "\n")
      mutation.hunks.append(
        Hunk(path: path, before: before.joined(separator: "\n"), after: text))
    }
    let text = (try? String(contentsOf: url, encoding: .utf8)) ?? ""
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
      if line.hasPrefix("=== ") {
        close(&self)
        (path, before, after) = (String(line.dropFirst(4)), [], nil)
      } else if path == nil {
        head.append(String(line))
      } else if line == "---", after == nil {
        after = []
      } else if after == nil {
        before.append(String(line))
      } else {
        after?.append(String(line))
      }
    }
    close(&self)
  }
}
