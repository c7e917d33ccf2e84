import CairnTool
import Testing

@Suite("Paths of keys in a tree")
struct TreePathTests {
  @Test(arguments: ["a", "a/b", "-a", ".hidden", "a..", "...", "a b\n", "%41", ".cairn-encodedx"])
  func `a relative path is its own file`(key: String) {
    #expect(TreePath.isPlain(Array(key.utf8), valueIsEmpty: false))
  }

  @Test(arguments: [
    "/a", "a//b", "a/", "/", "", ".", "..", "../a", "a/../b", "a/.", "a\0b", ".cairn-encoded",
    ".cairn-encoded/a", "a/" + String(repeating: "x", count: 256),
  ])
  func `any other key is encoded`(key: String) {
    #expect(!TreePath.isPlain(Array(key.utf8), valueIsEmpty: false))
  }

  @Test func `a slash at the end of a key without a value is an empty directory`() {
    #expect(TreePath.isPlain(Array("a/b/".utf8), valueIsEmpty: true))
    #expect(!TreePath.isPlain(Array("a//".utf8), valueIsEmpty: true))
    #expect(!TreePath.isPlain(Array("/".utf8), valueIsEmpty: true))
  }

  @Test(arguments: [1, 66, 67, 199, 200, 201, 400, 401, 65_535])
  func `an encoded key comes back`(byteCount: Int) {
    let key = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    let names = TreePath.encodedNames(of: key)
    #expect(names.allSatisfy { !$0.isEmpty && $0.count <= 201 })
    #expect(TreePath.key(ofEncodedPath: Array(names.joined(separator: [0x2F]))) == key)
  }

  @Test func `the file of one encoded key is never the directory of another`() {
    let short = [UInt8](repeating: 0x78, count: 200)
    let long = short + [0x79]
    #expect(TreePath.encodedNames(of: short)[1] != TreePath.encodedNames(of: long)[1])
  }

  @Test(arguments: [".cairn-encoded/%2f", ".cairn-encoded/a/b", ".cairn-encoded/a+/b", "%2Fa"])
  func `a path that no export writes is not decoded`(path: String) {
    #expect(TreePath.key(ofEncodedPath: Array(path.utf8)) == nil)
  }

  @Test func `a key in the way of a directory is no plain path`() {
    let keys = ["a", "a!", "a/b", "a/b/", "a/b/c", "b", "c/", "d/", "d/e"].map { Array($0.utf8) }
    let plan = ExportPlan(keys: keys) { _ in true }
    #expect(plan.plain == ["a!", "a/b/c", "b", "c/", "d/e"].map { Array($0.utf8) })
    #expect(plan.obstructing == ["a", "a/b", "a/b/", "d/"].map { Array($0.utf8) })
    #expect(plan.encoded == [])
  }

  @Test(arguments: [
    ("%41", "A"), ("%4", "%4"), ("%", "%"), ("%zz", "%zz"), ("%%41", "%A"),
    ("a%2Fb%2e", "a/b."), ("%2541", "%41"),
  ])
  func `percent-decoding keeps what is no escape`(name: String, key: String) {
    #expect(PercentEncoding.decode(Array(name.utf8)) == Array(key.utf8))
  }

  @Test func `percent-encoding can be undone for every byte`() {
    let bytes = (UInt8.min...UInt8.max).map { $0 }
    #expect(PercentEncoding.decode(PercentEncoding.encode(bytes)) == bytes)
  }
}
