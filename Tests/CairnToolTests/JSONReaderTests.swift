import Cairn
import CairnEssentials
import CairnTool
import Testing

@Suite("Reading JSON")
struct JSONReaderTests {
  private func members(
    _ text: String
  ) throws(JSONReader.Failure) -> [(name: String, value: JSONReader.Value)] {
    try JSONReader.members(of: Array(text.utf8))
  }

  @Test func `members come back in order`() throws {
    #expect(try members("{}").isEmpty)
    let all = try members(#" { "a" : "b" ,"n":null, "a":-12.50e+3 , "z":0}"# + "\t\r")
    #expect(all.map(\.name) == ["a", "n", "a", "z"])
    #expect(
      all.map(\.value) == [
        .string([0x62]), .null, .number(Array("-12.50e+3".utf8)), .number(Array("0".utf8)),
      ])
  }

  @Test(arguments: [
    (#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{C}\n\r\t"), (#"\u0000\u00e9\uFFFF"#, "\0é\u{FFFF}"),
    (#"\uD83D\uDC69x"#, "👩x"), ("é👩\u{7F}", "é👩\u{7F}"), ("", ""),
  ])
  func `strings are decoded`(text: String, meaning: String) throws {
    let value = try members("{\"\(text)\":\"\(text)\"}")[0]
    #expect(value.value == .string(Array(meaning.utf8)))
    #expect(value.name.utf8.elementsEqual(meaning.utf8))
  }

  @Test(arguments: [
    ("", 0), (" ", 1), ("[]", 0), ("null", 0), (#"{"a":1}x"#, 7), (#"{"a":1}{}"#, 7),
    (#"{"a":1,}"#, 7), (#"{,}"#, 1), (#"{"a"}"#, 4), (#"{"a" 1}"#, 5), (#"{"a":}"#, 5),
    (#"{"a":1 "b":2}"#, 7), (#"{a:1}"#, 1), (#"{'a':1}"#, 1), (#"{"a":[1]}"#, 5),
    (#"{"a":{}}"#, 5), (#"{"a":true}"#, 5), (#"{"a":nul"#, 5), (#"{"a":+1}"#, 5),
    (#"{"a":01}"#, 6), (#"{"a":-}"#, 6), (#"{"a":.5}"#, 5), (#"{"a":1.}"#, 7), (#"{"a":1e}"#, 7),
    (#"{"a":NaN}"#, 5), (#"{"a"#, 3), (#"{"a\"#, 4), (#"{"\x"#, 3), (#"{"\u12"#, 6),
    (#"{"\u12g4":1}"#, 6), (#"{"\uD800":1}"#, 8), (#"{"\uDC00":1}"#, 8),
    (#"{"\uD800\u0041":1}"#, 14), (#"{"\uD800\n":1}"#, 8), (#"{"\uD800\uD800":1}"#, 14),
    ("{\"a\nb\":1}", 3), ("{\"\u{1F}\":1}", 2), ("{\"a\":1", 6), ("\u{FEFF}{}", 0),
  ])
  func `anything else fails at its place`(text: String, offset: Int) {
    #expect(throws: JSONReader.Failure.self, "\(text)") { try members(text) }
    do throws(JSONReader.Failure) { _ = try members(text) } catch {
      #expect(error.offset == offset, "\(text): \(error)")
    }
  }

  @Test(arguments: [[0xFF], [0xC3], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80]])
  func `bytes that are not UTF-8 fail`(bytes: [UInt8]) {
    #expect(throws: JSONReader.Failure.self) {
      try JSONReader.members(of: Array("{\"".utf8) + bytes + Array("\":1}".utf8))
    }
  }

  /// Random changes of valid text never trap, and what is accepted is JSON to Foundation too.
  @Test func `it accepts only what Foundation accepts`() {
    let seed = Array(#"{"key":"a\u00e9\uD83D\uDC69\\","n":-1.5e3,"m":null}"#.utf8)
    var accepted = 0
    for _ in 0..<20_000 {
      var text = seed
      for _ in 0..<Int.random(in: 1...3) {
        let place = Int.random(in: 0..<text.count)
        switch Int.random(in: 0..<3) {
        case 0: text[place] = UInt8.random(in: 0...255)
        case 1: text.remove(at: place)
        default: text.insert(seed.randomElement() ?? 0, at: place)
        }
      }
      guard (try? JSONReader.members(of: text)) != nil else { continue }
      accepted += 1
      #expect(
        (try? JSONDecoder().decode([String: Member].self, from: Data(text))) != nil,
        "\(String(decoding: text, as: UTF8.self))")
    }
    #expect(accepted > 100)
  }

  private struct Member: Decodable {
    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if value.decodeNil() || (try? value.decode(String.self)) != nil { return }
      // A number may be too large for a `Double`.
      _ = try? value.decode(Double.self)
    }
  }

  @Test func `a moment comes back from its text, and has no other`() {
    var moments: [Int64] = [0, -1, 1, .max, .min, 951_782_400_000, -62_167_219_200_000]
    for _ in 0..<2000 { moments.append(.random(in: .min ... .max) >> Int64.random(in: 0...40)) }
    for moment in moments {
      let text = Timestamp(millisecondsSinceEpoch: moment).description
      #expect(Timestamp(reading: text)?.millisecondsSinceEpoch == moment, "\(text)")
    }
    for wrong in [
      "", "now", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z",
      "2026-01-01T00:00:00", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00.5Z",
      "2026-01-01T00:00:00.000Z", "2026-1-01T00:00:00Z", "02026-01-01T00:00:00Z",
      "2026-01-01T00:00:00+00:00", "9999999999-01-01T00:00:00Z", "+292278994-08-17T07:12:55.808Z",
      "2026-01-99999999999999999999T00:00:00Z", "2026-01-01T00:00:999999999Z", "------",
      "1-2-3-4-5-6",
    ] {
      #expect(Timestamp(reading: wrong) == nil, "\(wrong)")
    }
  }
}
