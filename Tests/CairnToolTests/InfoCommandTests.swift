import Cairn
import CairnEssentials
import Testing

@Suite("info")
struct InfoCommandTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }

  init() throws {
    directory = try TemporaryDirectory()
    let open = try Store(path: store)
    _ = try open.setValue("plain", forKey: "plain")
    _ = try open.setValue(
      "value", forKey: "all",
      options: EntryOptions(
        cost: 7, lifetime: .seconds(1000), idleLimit: .seconds(90.5), metadata: [1, 2, 3]))
    try open.close()
  }

  private struct Info: Decodable {
    let key: String?
    let keyBase64: Data?
    let version, valueBytes: Int
    let metadata, written, accessed: String
    let expires: String?
    let idleLimitSeconds: Double?
    let cost: Int?
    let tags: [String]
  }

  private func info(_ outcome: ChildProcess.Outcome) throws -> Info {
    #expect(outcome.status == 0)
    #expect(outcome.lines.count == 1)
    return try JSONDecoder().decode(Info.self, from: Data(outcome.output))
  }

  @Test func `as JSON it has all that the store knows`() throws {
    let all = try info(cairn("info", store, "all", "--json"))
    #expect(all.key == "all" && all.version == 2 && all.valueBytes == 5)
    #expect(all.metadata == "\u{1}\u{2}\u{3}" && all.tags.isEmpty)
    #expect(all.idleLimitSeconds == 90.5 && all.cost == 7)
    let written = try Date(all.written, strategy: .iso8601)
    #expect(abs(written.timeIntervalSinceNow) < 60)
    #expect(all.expires != nil)
    let plain = try info(cairn("info", store, "plain", "--json"))
    #expect(plain.version == 1 && plain.metadata.isEmpty)
    #expect(plain.expires == nil && plain.idleLimitSeconds == nil && plain.cost == nil)
  }

  @Test func `for a person it names what it tells`() throws {
    let lines = try cairn("info", store, "all").lines
    let labels = [
      "key", "version", "value", "metadata", "tags", "written", "last access", "expires",
      "idle limit", "cost",
    ]
    #expect(lines.count == labels.count)
    for (line, label) in zip(lines, labels) { #expect(line.hasPrefix(label + " "), "\(line)") }
    #expect(lines.contains("value        5 bytes"))
    #expect(lines.contains("idle limit   1 min 30 s"))
    #expect(lines.contains(#"metadata     \x01\x02\x03 (3 bytes)"#))
    #expect(try cairn("info", store, "plain").lines.contains("expires      -"))
  }

  @Test func `the tags of a cache's entry are shown`() throws {
    let path = directory("cache")
    let cache = try DiskCache<String, String>.open(
      .path(path), configuration: DiskCacheConfiguration(),
      keyCoder: .standard, valueCoder: .standard)
    try cache.setValue("value", forKey: "key", options: .tags(["user/7", "new"]))
    try cache.close()
    let key = try #require(try cairn("keys", path).lines.first)
    #expect(try cairn("info", path, key).lines.contains("tags         user/7, new"))
    #expect(try cairn("info", path, key, "--json").text.contains(#""tags": ["user/7", "new"]"#))
  }

  @Test func `a key that is not there exits as with get`() throws {
    let outcome = try cairn("info", store, "none")
    #expect(outcome.status == 1)
    #expect(outcome.output.isEmpty)
    #expect(outcome.errors == "cairn: info: none: no such key\n")
    #expect(try cairn("info", directory("nowhere"), "none").status == 5)
  }

  @Test func `a key that is no text is shown`() throws {
    let key: [UInt8] = [0x66, 0xFF, 0x0A]
    let words = ["put", store].map { Array($0.utf8) }
    try cairn(bytes: words + [key, Array("v".utf8)])
    let question = ["info", store].map { Array($0.utf8) } + [key]
    #expect(try cairn(bytes: question).lines.first == "key          f\\xFF\\x0A")
    let report = try info(cairn(bytes: question + [Array("--json".utf8)]))
    #expect(report.keyBase64 == Data(key))
  }
}
