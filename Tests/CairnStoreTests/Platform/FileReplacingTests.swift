import CairnStore
import Foundation
import Testing

@Suite("A file that is replaced atomically")
struct FileReplacingTests {
  let directory: TemporaryDirectory
  init() throws { directory = try TemporaryDirectory() }

  @Test("The leftovers of a dead process are recognised by name, and removed")
  func leftover() throws {
    for name in ["died", "later"] {
      try FileManager.default.createDirectory(
        atPath: directory.path + "/" + name, withIntermediateDirectories: false)
    }
    func names(_ name: String) throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: directory.path + "/" + name).sorted()
    }
    let files = FaultyFileSystem()
    func replace(_ name: String) throws(StoreError) {
      try Array("new".utf8).withBytes { (bytes) throws(StoreError) in
        try File.replace(at: directory.path + "/" + name, with: bytes, fileSystem: files)
      }
    }
    files.setHook { $0.call == .rename || $0.call == .unlink ? 5 : nil }
    #expect(throws: StoreError.self) { try replace("died/out") }
    files.setHook(nil)
    let left = try #require(try names("died").first)
    #expect(try names("died").count == 1)
    #expect(left.hasPrefix(".cairn-export-") && left.utf8.count == 14 + 13)
    try FileManager.default.moveItem(
      atPath: directory.path + "/died/" + left, toPath: directory.path + "/later/" + left)
    try replace("later/out")
    #expect(try names("later") == ["out"])
    #expect(files.openDescriptorCount == 0)
  }
}
