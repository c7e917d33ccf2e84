import Foundation
import StoreCopying
import Testing

@Suite("Whether paths lead to the same directory")
final class DirectoryIDTests {
  private let root = NSTemporaryDirectory() + "/directories-\(UUID().uuidString)"

  init() throws {
    for path in ["/a/b/c", "/d"] {
      try FileManager.default.createDirectory(
        atPath: root + path, withIntermediateDirectories: true)
    }
    try FileManager.default.createSymbolicLink(
      atPath: root + "/link", withDestinationPath: root + "/a/b")
  }

  deinit { try? FileManager.default.removeItem(atPath: root) }

  @Test("The spelling does not matter", arguments: ["/a/b/", "/a/./b", "/d/../a/b", "/link"])
  func spellings(path: String) {
    #expect(DirectoryID.isSame(root + "/a/b", root + path))
    #expect(DirectoryID.overlaps(root + "/a/b", root + path))
  }

  @Test("Other directories, and paths with nothing there, differ")
  func others() {
    #expect(!DirectoryID.isSame(root + "/a", root + "/d"))
    #expect(!DirectoryID.isSame(root + "/x", root + "/y"))
    #expect(!DirectoryID.isSame(root + "/a", root + "/a/b"))
    #expect(DirectoryID(root + "/x") == nil)
  }

  @Test("A directory overlaps with those above it and with paths below it")
  func overlaps() {
    for path in ["/a", "/a/b/c", "/a/b/x/y", "/link/x", "/d/../a/b/x", ""] {
      #expect(DirectoryID.overlaps(root + "/a/b", root + path), "\(path)")
      #expect(DirectoryID.overlaps(root + path, root + "/a/b"), "\(path)")
    }
    for path in ["/d", "/d/x", "/a/x", "/x"] {
      #expect(!DirectoryID.overlaps(root + "/a/b", root + path), "\(path)")
      #expect(!DirectoryID.overlaps(root + path, root + "/a/b"), "\(path)")
    }
    #expect(DirectoryID.overlaps("/", root))
    #expect(!DirectoryID.overlaps("absent", root))
  }
}
