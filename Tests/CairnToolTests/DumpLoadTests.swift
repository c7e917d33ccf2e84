import Cairn
import CairnEssentials
import FuzzSupport
import Testing

@Suite("dump and load")
struct DumpLoadTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }
  var copy: String { directory("copy") }

  init() throws { directory = try TemporaryDirectory() }

  /// What a load must give back: everything but the version and the times that the store sets.
  private struct Kept: Equatable {
    let value, metadata: [UInt8]
    let expires: Timestamp?
    let idleLimit: Duration?
    let cost: Int?
  }

  private func entries(_ path: String) throws -> [[UInt8]: Kept] {
    var entries: [[UInt8]: Kept] = [:]
    let open = try Store(readingAt: path)
    try open.forEachEntry { entry in
      entries[entry.key] = Kept(
        value: entry.value, metadata: entry.metadata, expires: entry.info.expires,
        idleLimit: entry.info.idleLimit, cost: entry.info.cost)
      return .next
    }
    try open.close()
    return entries
  }

  private func load(_ lines: String..., into path: String? = nil) throws -> ChildProcess.Outcome {
    try cairn("load", path ?? copy, input: Array(lines.joined(separator: "\n").utf8))
  }

  @Test func `a loaded dump has equal entries`() throws {
    let open = try Store(path: store)
    var random = SystemRandomNumberGenerator()
    for (number, key) in KeyFormatTests.keys.enumerated() {
      func bytes() -> [UInt8] {
        switch Int.random(in: 0..<3, using: &random) {
        case 0: []
        case 1: Array("text \"\(number)\"\n\u{1}é👩\u{2028}".utf8)
        default: (0..<Int.random(in: 1...40)).map { _ in .random(in: 0...255, using: &random) }
        }
      }
      var options = EntryOptions(metadata: bytes())
      if number % 2 == 0 {
        options.lifetime = .milliseconds(Int64.random(in: 1_000_000...(1 << 50)))
      }
      if number % 3 == 0 {
        options.idleLimit = .milliseconds(Int64.random(in: 100_000...(1 << 50)))
      }
      if number % 5 == 0 { options.cost = .random(in: 0 ... .max) }
      try open.setValue(bytes(), forKey: key, options: options, durability: .process)
    }
    try open.setValue(
      "", forKey: "ends",
      options: EntryOptions(
        lifetime: .until(Timestamp(millisecondsSinceEpoch: .max)),
        idleLimit: .milliseconds(Int64.max)))
    try open.increment(forKey: "counter", by: -5)
    // Longer than a batch of the load, and longer than one read of its input.
    try open.setValue([UInt8](repeating: 0x22, count: 2 << 20), forKey: "large")
    try open.setValue([UInt8](repeating: 0xFF, count: 300_000), forKey: "binary")
    try open.setValue("now", forKey: "binary\n")
    try open.close()
    let dump = try cairn("dump", store)
    #expect(dump.status == 0)
    let count = KeyFormatTests.keys.count + 5
    #expect(dump.lines.count == count)
    let outcome = try cairn("load", copy, input: dump.output)
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.text == "loaded 2,005 entries\n")
    #expect(try entries(copy) == entries(store))
    #expect(try cairn("get", copy, "counter", "--counter").text == "-5\n")
    // Every line is an object to another reader, too.
    for line in dump.lines.prefix(100) {
      #expect((try? JSONDecoder().decode([String: Field].self, from: Data(line.utf8))) != nil)
    }
  }

  private struct Field: Decodable {
    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if value.decodeNil() || (try? value.decode(String.self)) != nil { return }
      _ = try value.decode(Double.self)
    }
  }

  @Test func `a pipe carries a store, and get --json has the same object`() throws {
    try cairn("put", store, "a/1", "x", "--metadata", "m", "--lifetime", "1h")
    try cairn("put", store, "b", "y")
    let shell =
      "'\(Command.path)' dump '\(store)' --prefix a/ | '\(Command.path)' load '\(copy)' --json"
    let outcome = try ChildProcess.run("/bin/sh", [Array("-c".utf8), Array(shell.utf8)])
    #expect(outcome.text == "{\"loaded\": 1}\n")
    #expect(try cairn("keys", copy).text == "a/1\n")
    #expect(try entries(copy) == entries(store).filter { $0.key != Array("b".utf8) })
    let line = try cairn("get", store, "b", "--json")
    #expect(line.text.hasPrefix(#"{"key": "b", "value": "y", "version": 2, "valueBytes": 1, "#))
    #expect(try cairn("load", copy, input: line.output).status == 0)
    #expect(try entries(copy) == entries(store))
  }

  @Test func `a cache keeps its tags`() throws {
    func cache(_ path: String) throws -> DiskCache<String, String> {
      try .open(
        .path(path), configuration: DiskCacheConfiguration(), keyCoder: .standard,
        valueCoder: .standard)
    }
    let first = try cache(store)
    try first.setValue("value", forKey: "key", options: .tags(["t"]))
    try first.close()
    try cairn("load", copy, input: cairn("dump", store).output)
    let second = try cache(copy)
    #expect(try second.keys(tagged: "t") == ["key"])
    #expect(try second.value(forKey: "key") == "value")
    try second.close()
    // The mark of a removed tag, which hides entries by their versions.
    let open = try Store(path: store)
    try open.setValue([1], forKey: ReservedKey.marks)
    try open.close()
    let outcome = try cairn("dump", store)
    #expect(outcome.status == 5 && outcome.output.isEmpty)
    #expect(outcome.errors.contains("the cache has not finished the removal of a tag"))
  }

  @Test func `the last entry of a key counts, whatever its size`() throws {
    let large = String(repeating: "x", count: 1 << 20)
    let lines = [#"{"key":"a","value":"1"}"#, #"{"key":"a","value":"\#(large)"}"#]
    #expect(try load(lines[0], lines[1]).text == "loaded 2 entries\n")
    #expect(try cairn("get", copy, "a").output.count == 1 << 20)
    #expect(try load(lines[1], lines[0]).text == "loaded 2 entries\n")
    #expect(try cairn("get", copy, "a").text == "1")
  }

  @Test func `an end that has passed expires the entry, and nothing makes an empty store`() throws {
    let past = #"{"key":"a","value":"1","expires":"2001-02-03T04:05:06Z"}"#
    #expect(try load(past).status == 0)
    #expect(try cairn("keys", copy).output.isEmpty)
    #expect(try load(into: store).text == "loaded 0 entries\n")
    #expect(try cairn("keys", store).status == 0)
  }

  @Test(arguments: [
    ("", "column 1: expected {"), ("x", "column 1: expected {"), ("[]", "column 1: expected {"),
    (#"{"key":"b","val"#, "column 16: the string has no end"),
    (#"{"key":"b","value":"c""#, "column 23: expected , or }"),
    (#"{"key":"b","value":"\uD800"}"#, "column 27: a surrogate must be half of a pair"),
    (#"{"key":"b"}"#, "value is missing"), (#"{"value":"c"}"#, "key is missing"),
    ("{}", "key is missing"),
    (#"{"key":"","value":"c"}"#, "key must not be empty"),
    (#"{"key":1,"value":"c"}"#, "key must be a string"),
    (#"{"key":"b","value":null}"#, "value must be a string"),
    (#"{"key":"b","valueBase64":"Zg="}"#, "valueBase64 must be base64 with padding"),
    (#"{"key":"b","keyBase64":"Yg==","value":"c"}"#, "key occurs twice"),
    (#"{"key":"b","value":"c","cost":1,"cost":1}"#, "cost occurs twice"),
    (#"{"key":"b","value":"c","cost":-1}"#, "cost must be a whole number"),
    (#"{"key":"b","value":"c","cost":9223372036854775808}"#, "cost must be a whole number"),
    (
      #"{"key":"b","value":"c","idleLimitSeconds":0}"#,
      "idleLimitSeconds must be a number of seconds"
    ),
    (#"{"key":"b","value":"c","idleLimitSeconds":"1h"}"#, "idleLimitSeconds must be a number"),
    (#"{"key":"b","value":"c","expires":"2026-02-30T00:00:00Z"}"#, "expires must be a time in UTC"),
    (#"{"key":"b","vaule":"c"}"#, "unknown member vaule"),
    (#"{"key":"b","value":"c","\u001B[31m":1}"#, #"unknown member \x1B[31m"#),
    (
      #"{"key":"\#(String(repeating: "k", count: 65_536))","value":"c"}"#,
      "key has 65,536 bytes, more than 65,535"
    ),
    (
      #"{"key":"b","value":"c","metadata":"\#(String(repeating: "m", count: 65_536))"}"#,
      "metadata has 65,536 bytes, more than 65,535"
    ),
  ])
  func `a malformed line is named, and the entries before it are stored`(
    line: String, reason: String
  )
    throws
  {
    let outcome = try load(
      #"{"key":"a","value":"1"}"#, #"{"key":"A","value":"2"}"#, line + "\n",
      #"{"key":"z","value":"3"}"#)
    #expect(outcome.status == 5)
    #expect(outcome.output.isEmpty)
    #expect(outcome.errors.hasPrefix("cairn: load: standard input, line 3"))
    #expect(outcome.errors.contains(reason), "\(outcome.errors)")
    #expect(outcome.errors.hasSuffix("; loaded 2 entries before that\n"))
    #expect(outcome.errors.utf8.count { $0 == UInt8(ascii: "\n") } == 1)
    #expect(try cairn("keys", copy).lines == ["A", "a"])
  }

  @Test func `a first line that is malformed makes no store`() throws {
    let outcome = try load("nothing")
    #expect(outcome.status == 5)
    #expect(
      outcome.errors == "cairn: load: standard input, line 1, column 1: expected {\n")
    #expect(!directory.exists("copy"))
  }

  @Test func `a damaged value is passed over, and the exit status is 3`() throws {
    for key in ["a", "b", "c"] { try cairn("put", store, key, "a value of \(key).") }
    let names = try ChildProcess.run("/bin/ls", [Array(store.utf8)]).lines
    for name in names where name.hasPrefix("seg-") {
      var bytes = try directory.contents("store/" + name)
      guard let place = bytes.firstRange(of: Array("a value of b".utf8)) else { continue }
      bytes[place.lowerBound] ^= 1
      try directory.makeFile("store/" + name, bytes)
    }
    let dump = try cairn("dump", store)
    #expect(dump.status == 3 && dump.errors.contains("corrupt: seg-"))
    #expect(dump.lines.count == 2)
    try cairn("load", copy, input: dump.output)
    #expect(try cairn("keys", copy).lines == ["a", "c"])
  }

  @Test(.enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"))
  func `a full disk is told with what was loaded`() throws {
    let disk = try TinyDisk(byteCount: 30 << 20)
    let value = String(repeating: "v", count: 100_000)
    let lines = (0..<400).map { #"{"key":"\#($0)","value":"\#(value)"}"# }
    let outcome = try cairn(
      "load", disk.path + "/store", input: Array(lines.joined(separator: "\n").utf8))
    #expect(outcome.status == 5)
    #expect(outcome.errors.hasSuffix(" entries before that\n"), "\(outcome.errors)")
    let words = outcome.errors.split(separator: " ")
    let loaded = try #require(words.firstIndex(of: "loaded").flatMap { Int(words[$0 + 1]) })
    #expect(loaded > 0)
    #expect(try cairn("keys", disk.path + "/store").lines.count == loaded)
  }
}
