import Cairn
import CommandText
import Testing

@Suite("On a terminal")
struct TerminalTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }

  init() throws { directory = try TemporaryDirectory() }

  @Test func `text ends in a newline`() throws {
    try cairn("put", store, "key", "hello")
    #expect(try PseudoTerminal(columns: 80).cairn("get", store, "key") == "hello\r\n")
    #expect(try cairn("get", store, "key").text == "hello")
    try cairn("put", store, "key", "hello\n")
    #expect(try PseudoTerminal(columns: 80).cairn("get", store, "key") == "hello\r\n")
  }

  @Test(arguments: [
    Array("a\u{1B}[31mb".utf8), [0xFF, 0xFE], Array("a\u{9B}b".utf8), Array("a\u{202E}b".utf8),
    [UInt8](repeating: 65, count: 1 << 20 + 1),
  ])
  func `a value that a terminal may obey, or is too large, is not shown`(value: [UInt8]) throws {
    try cairn("put", store, "key", input: value)
    let text = try PseudoTerminal(columns: 80).cairn("get", store, "key")
    #expect(text.hasPrefix("cairn: get: ") && words(text).contains("write them to a file"))
    #expect(try cairn("get", store, "key").output == value)
  }

  @Test func `keys and messages hold nothing that a terminal obeys`() throws {
    let key = "a\u{1B}[31mb\u{202E}c\u{61C}"
    try cairn("put", store, key, "value")
    let terminal = try PseudoTerminal(columns: 80)
    let shown = "a\\x1B[31mb\\xE2\\x80\\xAEc\\xD8\\x9C"
    #expect(try terminal.cairn("keys", store) == shown + "\r\n")
    #expect(try terminal.cairn("delete", store, key + "d").contains(shown + "d: no such key"))
    #expect(
      words(try terminal.cairn("stats", directory(key))).contains(shown + ": there is no store"))
    #expect(try cairn("keys", store, "--json").text.contains("a\\u001B[31mb\\u202Ec\\u061C"))
  }

  @Test func `progress is shown, fits and is taken away`() throws {
    try manySegments(store)
    let terminal = try PseudoTerminal(columns: 30)
    // At this rate, the command takes half a second on any machine.
    let text = try terminal.cairn("verify", store, "--rate", "100M")
    let lines = text.components(separatedBy: "\r\u{1B}[K")
    #expect(lines.count > 2, "\(text)")
    let progress = lines.dropFirst().dropLast().filter { !$0.isEmpty }
    #expect(progress.contains { $0.hasPrefix("checked ") })
    #expect(progress.allSatisfy { $0.count < 30 && !$0.contains("\n") })
    #expect(lines.last?.hasPrefix("48 sound records,") == true)
  }
}

/// Text with each run of spaces as one space.
func words(_ text: String) -> String {
  text.split { $0.isWhitespace }.joined(separator: " ")
}

/// Fills a store of 48 segments, for commands that take a while.
func manySegments(_ path: String) throws {
  var configuration = StoreConfiguration()
  configuration.segmentByteLimit = 1 << 20
  configuration.durability = .process
  let store = try Store(path: path, configuration: configuration)
  for number in 0..<48 {
    _ = try store.setValue(
      [UInt8](repeating: UInt8(number), count: 1_000_000), forKey: Array("key \(number)".utf8))
  }
  try store.close()
}

/// Removes the first keys of such a store and leaves one expired key, with no background work.
func removeMany(_ path: String, count: Int) throws {
  struct NoQueue: BackgroundQueue {
    func run(_ job: @escaping @Sendable () -> Void) {}
    func run(after delay: Duration, _ job: @escaping @Sendable () -> Void) {}
  }
  let store = try Store(
    path: path, configuration: StoreConfiguration(),
    environment: Environment(fileSystem: SystemFileSystem(), background: NoQueue()),
    readOnly: false)
  for number in 0..<count { _ = try store.removeValue(forKey: "key \(number)") }
  try store.setValue("value", forKey: "short", lifetime: .milliseconds(1))
  try store.close()
}

extension String {
  fileprivate func components(separatedBy separator: String) -> [Substring] {
    split(separator: separator, omittingEmptySubsequences: false)
  }
}
