import Cairn
import CairnTool
import Testing

@Suite("Formats of keys")
struct KeyFormatTests {
  /// Random keys of the bytes that are hard to write: controls, backslashes, parts of characters,
  /// whole characters and text that looks like an escape.
  static let keys: [[UInt8]] = {
    var random = SystemRandomNumberGenerator()
    let parts: [[UInt8]] =
      [[0x0A], [0x5C], [0x5C, 0x78], [0x78, 0x34, 0x31], [0xC3], [0xA9], [0xF0, 0x9F], [0x7F]]
      + ["é", "👩‍👧", "\u{202E}", "\u{FEFF}", " ", "\t", "=", "+", "/", "\""].map { Array($0.utf8) }
    var keys = Set((1...255).map { [UInt8($0)] })
    while keys.count < 2000 {
      let count = Int.random(in: 1...8, using: &random)
      keys.insert(
        (0..<count).flatMap { _ in
          Bool.random(using: &random)
            ? [UInt8.random(in: 0...255, using: &random)]
            : parts.randomElement(using: &random) ?? []
        })
    }
    return Array(keys)
  }()

  @Test(arguments: KeyFormat.allCases)
  func `every key comes back from its text, and no two share one`(format: KeyFormat) {
    var texts: Set<String> = []
    for key in Self.keys {
      let text = format.text(of: key)
      #expect(format.key(from: Array(text.utf8)) == key, "\(text)")
      #expect(!text.unicodeScalars.contains { $0.properties.generalCategory == .control })
      texts.insert(text)
    }
    #expect(texts.count == Self.keys.count)
  }

  @Test(arguments: [
    #"a\"#, #"\n"#, #"\x"#, #"\x4"#, #"\x4g"#, #"\xé"#, #"\\\"#, #"\X41"#,
  ])
  func `another escape is refused`(text: String) {
    #expect(KeyFormat.escaped.key(from: Array(text.utf8)) == nil)
  }

  @Test func `escapes may have digits of either case, and stand for any byte`() {
    #expect(KeyFormat.escaped.key(from: Array(#"\x4a\x4B\\x"#.utf8)) == Array(#"JK\x"#.utf8))
  }

  @Test(arguments: [
    "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Z===", "====", "=", "Zm9v\n", "Zm 9v", "Zm9-",
    "Zg==Zg==",
  ])
  func `malformed base64 is refused`(text: String) {
    #expect(KeyFormat.base64.key(from: Array(text.utf8)) == nil)
  }

  @Test(arguments: KeyFormat.allCases)
  func `what keys prints can be given back`(format: KeyFormat) throws {
    let directory = try TemporaryDirectory()
    let path = directory("store")
    let keys = Self.keys.prefix(40)
    let open = try Store(path: path)
    for key in keys { try open.setValue(key, forKey: key) }
    try open.close()
    func run(_ words: [String]) throws -> ChildProcess.Outcome {
      let outcome = try cairn(
        bytes: (["--key-format", format.rawValue] + words).map { Array($0.utf8) })
      #expect(outcome.status == 0, "\(words): \(outcome.errors)")
      return outcome
    }
    let lines = try run(["keys", path]).lines
    try #require(lines.count == keys.count)
    #expect(
      try run(["keys", path, "--long"]).lines.map {
        $0.split(separator: "\t").last.map(String.init)
      } == lines)
    for (text, key) in zip(lines, keys.sorted { $0.lexicographicallyPrecedes($1) }) {
      #expect(try run(["get", path, "--", text]).output == key)
    }
    let some = Array(lines.prefix(3))
    #expect(try run(["info", path, "--", some[0]]).lines.first == "key          \(some[0])")
    try _ = run(["put", path, "--", some[0], "new"])
    #expect(try run(["get", path, "--", some[0]]).text == "new")
    try _ = run(["expire", path, "--lifetime", "1h", "--"] + some)
    #expect(try run(["dump", path, "--prefix=\(some[0])"]).text.contains(#""value": "new""#))
    #expect(try run(["keys", path, "--prefix=\(some[0])"]).lines.contains(some[0]))
    try _ = run(["delete", path, "--"] + some)
    #expect(try run(["keys", path]).lines == Array(lines.dropFirst(3)))
    #expect(try run(["increment", path, "--", some[0], "7"]).text == "7\n")
  }

  @Test func `a key in a wrong format names what is wrong, and nothing is opened`() throws {
    let directory = try TemporaryDirectory()
    let store = directory("store")
    #expect(
      try cairn("put", store, "Zm9", "v", "--key-format", "base64").errors
        == "cairn: put: KEY must be base64 with padding, not Zm9; see cairn help put\n")
    #expect(
      try cairn("keys", store, "--prefix", "a\\n", "--key-format", "escaped").errors.contains(
        #"--prefix must be text in which each backslash begins \\ or \xNN, not a\\n"#))
    #expect(
      try cairn("get", store, "k", "--key-format", "hex").errors.contains(
        "--key-format must be escaped or base64, not hex"))
    let long = String(repeating: "\\x61", count: 65_536)
    // One argument cannot be longer than 128 KiB.
    #expect(
      try cairn("get", store, String(repeating: "YWFh", count: 21_846), "--key-format", "base64")
        .errors.contains("KEY has 65538 bytes, more than 65535"))
    #expect(KeyFormat.escaped.key(from: Array(long.utf8))?.count == 65_536)
    #expect(!directory.exists("store"))
  }
}
