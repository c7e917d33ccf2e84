import Cairn
import Testing

@Suite("increment")
struct IncrementCommandTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }

  init() throws { directory = try TemporaryDirectory() }

  @Test func `a counter counts from 0, up and down`() throws {
    #expect(try cairn("increment", store, "visits").text == "1\n")
    #expect(try cairn("increment", store, "visits", "41").text == "42\n")
    #expect(try cairn("increment", store, "visits", "--", "-50").text == "-8\n")
    #expect(
      try cairn("increment", store, "visits", "0", "--json").text
        == #"{"key": "visits", "number": -8}"# + "\n")
    #expect(try cairn("get", store, "visits", "--counter").text == "-8\n")
    #expect(
      try cairn("get", store, "visits", "--counter", "--json").text
        == #"{"key": "visits", "number": -8}"# + "\n")
    let open = try Store(path: store)
    #expect(try open.counter(forKey: "visits") == -8)
    try open.close()
  }

  @Test func `only a new counter gets the lifetime`() throws {
    try cairn("increment", store, "old")
    try cairn("increment", store, "old", "--lifetime", "1h")
    try cairn("increment", store, "new", "--lifetime", "1h")
    let open = try Store(readingAt: store)
    #expect(try open.info(forKey: "old")?.expires == nil)
    #expect(try open.info(forKey: "new")?.expires != nil)
    try open.close()
  }

  @Test func `what is no counter stays, and is named`() throws {
    try cairn("put", store, "text", "value")
    for words in [["increment", store, "text"], ["get", store, "text", "--counter"]] {
      let outcome = try cairn(bytes: words.map { Array($0.utf8) })
      #expect(outcome.status == 5)
      #expect(
        outcome.errors
          == "cairn: \(words[0]): text: the value is not a counter: it has 5 bytes, and a counter has 8\n"
      )
    }
    #expect(try cairn("get", store, "text").text == "value")
    #expect(try cairn("get", store, "none", "--counter").status == 1)
  }

  @Test func `a number that does not fit changes nothing`() throws {
    try cairn("increment", store, "k", "9223372036854775807")
    let outcome = try cairn("increment", store, "k")
    #expect(outcome.status == 5 && outcome.errors.contains("would overflow 64 bits"))
    #expect(try cairn("get", store, "k", "--counter").text == "9223372036854775807\n")
  }
}
