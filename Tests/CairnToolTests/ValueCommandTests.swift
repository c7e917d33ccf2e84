import Cairn
import Testing

@Suite("put, get and delete")
struct ValueCommandTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }

  init() throws { directory = try TemporaryDirectory() }

  @Test func `a value from the argument comes back`() throws {
    #expect(try cairn("put", store, "key", "value").status == 0)
    let outcome = try cairn("get", store, "key")
    #expect(outcome.status == 0)
    #expect(outcome.text == "value")
    #expect(outcome.errors.isEmpty)
  }

  @Test(arguments: [0, 1, 65_535, 262_144, 262_145, 3_000_000])
  func `a value from standard input comes back, byte for byte`(byteCount: Int) throws {
    let value = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ $0 >> 8) }
    #expect(try cairn("put", store, "key", input: value).status == 0)
    #expect(try cairn("get", store, "key").output == value)
  }

  @Test func `a key may be any bytes`() throws {
    let key: [UInt8] = [0xFF, 0x0A, 0x80]
    let path = Array(store.utf8)
    try cairn(bytes: [Array("put".utf8), path, key, Array("odd".utf8)])
    #expect(try cairn(bytes: [Array("get".utf8), path, key]).text == "odd")
    #expect(try cairn("keys", store).text == "\\xFF\\x0A\\x80\n")
  }

  @Test func `after two dashes, a key may begin with one`() throws {
    #expect(try cairn("put", store, "--", "-k", "--ttl").status == 0)
    #expect(try cairn("get", "--", store, "-k").text == "--ttl")
  }

  @Test func `put replaces`() throws {
    try cairn("put", store, "key", "old")
    try cairn("put", store, "key", "new")
    #expect(try cairn("get", store, "key").text == "new")
  }

  @Test func `get of a missing key exits 1 and writes nothing`() throws {
    try cairn("put", store, "key", "value")
    let outcome = try cairn("get", store, "other")
    #expect(outcome.status == 1)
    #expect(outcome.output.isEmpty)
    #expect(outcome.errors == "cairn: get: other: no such key\n")
  }

  @Test func `delete removes keys`() throws {
    for key in ["a", "b", "c"] { try cairn("put", store, key, "value") }
    #expect(try cairn("delete", store, "a", "c").status == 0)
    #expect(try cairn("keys", store).text == "b\n")
  }

  @Test func `delete removes the others when a key is missing, and exits 1`() throws {
    for key in ["a", "b"] { try cairn("put", store, key, "value") }
    let outcome = try cairn("delete", store, "a", "missing", "b")
    #expect(outcome.status == 1)
    #expect(outcome.errors == "cairn: delete: missing: no such key\n")
    #expect(try cairn("keys", store).output.isEmpty)
  }

  @Test func `delete of a key named twice finds it`() throws {
    try cairn("put", store, "a", "value")
    #expect(try cairn("delete", store, "a", "a").status == 0)
  }

  @Test func `a value expires after its lifetime`() throws {
    try cairn("put", store, "long", "value", "--ttl", "1000")
    try cairn("put", store, "short", "value", "--ttl=0.02")
    #expect(try cairn("get", store, "long").status == 0)
    // Each attempt takes a process, so this ends after some hundredths of a second.
    var status: Int32 = 0
    for _ in 0..<10_000 where status == 0 { status = try cairn("get", store, "short").status }
    #expect(status == 1)
    #expect(try cairn("keys", store).text == "long\n")
  }

  @Test func `put, delete and get tell as JSON what they did`() throws {
    #expect(
      try cairn("put", store, "a", "value", "--json").text
        == #"{"key": "a", "version": 1, "valueBytes": 5, "existed": false, "stored": true}"# + "\n")
    #expect(
      try cairn("put", store, "a", "values", "--json").text
        == #"{"key": "a", "version": 2, "valueBytes": 6, "existed": true, "stored": true}"# + "\n")
    #expect(
      try cairn("get", store, "a", "--json").text.hasPrefix(
        #"{"key": "a", "value": "values", "version": 2, "valueBytes": 6, "metadata": "", "#))
    #expect(try cairn("get", store, "b", "--json").output.isEmpty)
    let outcome = try cairn("delete", store, "a", "b", "a", "--json")
    #expect(outcome.status == 1)
    #expect(
      outcome.lines == [
        #"{"key": "a", "version": 2, "valueBytes": 6, "existed": true}"#,
        #"{"key": "b", "version": null, "valueBytes": null, "existed": false}"#,
      ])
  }

  @Test func `if-absent leaves a key that exists, and exits 1`() throws {
    #expect(try cairn("put", store, "a", "first", "--if-absent").status == 0)
    let outcome = try cairn("put", store, "a", "second", "--if-absent")
    #expect(outcome.status == 1)
    #expect(outcome.errors == "cairn: put: a: the key exists\n")
    #expect(try cairn("get", store, "a").text == "first")
    let json = try cairn("put", store, "a", "second", "--if-absent", "--json")
    #expect(json.status == 1)
    #expect(
      json.text
        == #"{"key": "a", "version": 1, "valueBytes": 5, "existed": true, "stored": false}"# + "\n")
  }

  @Test func `metadata is stored, and may be any bytes`() throws {
    let words = ["put", store, "a", "value", "--metadata"].map { Array($0.utf8) }
    try cairn(bytes: words + [[0xFF, 0x01]])
    #expect(try cairn("info", store, "a").lines.contains(#"metadata     \xFF\x01 (2 bytes)"#))
    #expect(try cairn("info", store, "a", "--json").text.contains(#""metadataBase64": "/wE=""#))
    #expect(try cairn("get", store, "a").text == "value")
  }

  @Test func `wait waits for another process to close the store, but no longer`() throws {
    let open = try Store(path: store)
    let waiting = try ChildProcess(
      Command.path, ["put", store, "a", "value", "--wait", "1m"].map { Array($0.utf8) })
    #expect(try cairn("put", store, "b", "value", "--wait", "50ms").status == 4)
    try open.setValue("1", forKey: "c")
    try open.close()
    #expect(try waiting.wait().status == 0)
    #expect(try cairn("keys", store).lines == ["a", "c"])
  }
}
