import Foundation
import FuzzSupport
import Testing

/// Replays every kept input: seeds, and what the fuzzers found.
@Suite("The corpus of the fuzzers")
struct CorpusTests {
  private static let folder = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Fuzz/Corpus")

  @Test("Every input is decoded as the document says", arguments: FuzzTarget.all.map(\.name))
  func replay(name: String) throws {
    let target = try #require(FuzzTarget.named(name))
    let inputs = try Corpus.inputs(at: Self.folder.appending(path: name).path)
    #expect(!inputs.isEmpty)
    for input in inputs {
      do { try target.run(input.bytes) } catch { Issue.record("\(input.path): \(error)") }
    }
  }

  @Test("Every folder belongs to a target")
  func folders() throws {
    let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
    #expect(Set(names) == Set(FuzzTarget.all.map(\.name)))
  }
}
