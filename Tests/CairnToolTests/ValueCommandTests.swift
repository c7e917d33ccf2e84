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
}
