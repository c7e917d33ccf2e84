import Foundation
import Testing

@testable import Cairn

@Suite("Coders of a cache on disk")
struct CoderTests {
  struct Page: Codable, Hashable, Sendable {
    var title: String
    var sizes: [Int]
  }
  enum Trouble: Error {
    case plain
    case telling(String)
  }
  /// An error with a description of its own, which might contain anything.
  enum Speaking: Error, CustomStringConvertible {
    case plain
    var description: String { "the secret value" }
  }
  /// An error that debuggers show with its contents.
  enum Showing: Error, CustomReflectable {
    case telling(String)
    var customMirror: Mirror {
      guard case .telling(let value) = self else { return Mirror(self, children: []) }
      return Mirror(
        self, children: [value: value], displayStyle: .enum)
    }
  }
  struct Struct: Error { var value: String }

  let scene = DiskScene()

  /// The values that were written under one name each, read after a reopen.
  private func roundTrip<Value: Equatable>(
    _ values: [Value], _ coder: ValueCoder<Value>
  ) throws -> Bool {
    do {
      let cache = try scene.cache(keys: KeyCoder<Int>.integer, values: coder)
      for (number, value) in values.enumerated() { try cache.setValue(value, forKey: number) }
      try cache.close()
    }
    let cache = try scene.cache(keys: KeyCoder<Int>.integer, values: coder)
    defer { try? cache.removeAll() }
    return try cache.values(forKeys: 0..<values.count) == values
  }

  @Test("Values are read as they were written")
  func values() throws {
    #expect(try roundTrip([[], [0], [UInt8](repeating: 7, count: 100_000)], .bytes))
    #expect(try roundTrip([Data(), Data([1, 2])], .data))
    #expect(try roundTrip(["", "é", "e\u{301}", "\0", "👩‍👩‍👧"], .string))
    let pages = [Page(title: "", sizes: []), Page(title: "a \"b\"", sizes: [1, .max, .min])]
    #expect(try roundTrip(pages, .json()))
    #expect(try roundTrip(pages, .propertyList()))
    // Neither format can represent such a value alone, or once could not.
    #expect(try roundTrip([1, -5], ValueCoder<Int>.propertyList()))
    #expect(try roundTrip([1, -5], ValueCoder<Int>.json()))
    #expect(try roundTrip([nil, "x"], ValueCoder<String?>.json()))
  }

  @Test("Texts are read byte for byte, whatever they are equal to")
  func bytesOfText() throws {
    let cache: DiskCache<String, String> = try scene.cache()
    try cache.setValue("e\u{301}", forKey: "key")
    #expect(try cache.value(forKey: "key").map { Array($0.utf8) } == Array("e\u{301}".utf8))
  }

  @Test("The standard coders store bytes and texts unchanged, and everything else as JSON")
  func standard() throws {
    func stored<Key: Codable & Hashable & Sendable, Value: Codable & Sendable>(
      _ key: Key, _ value: Value
    ) throws -> ByteEntry? {
      do {
        let cache: DiskCache<Key, Value> = try scene.cache()
        try cache.setValue(value, forKey: key)
        try cache.close()
      }
      let store = try scene.store()
      var found: ByteEntry?
      try store.forEachEntry {
        found = $0
        return .stop
      }
      try store.removeAll()
      try store.close()
      return found
    }
    #expect(try stored("é", "ü")?.key == Array("é".utf8))
    #expect(try stored("é", "ü")?.value == Array("ü".utf8))
    #expect(try stored("é", "ü")?.metadata == [])
    #expect(try stored([1, 2] as [UInt8], [3] as [UInt8])?.key == [1, 2])
    #expect(try stored([1, 2] as [UInt8], [3] as [UInt8])?.value == [3])
    #expect(try stored(Data([1]), Data([4, 5]))?.value == [4, 5])
    #expect(try stored(258 as UInt16, "v")?.key == [1, 2])
    #expect(try stored(-2 as Int8, "v")?.key == [254])
    #expect(try stored(1, "v")?.key == [0, 0, 0, 0, 0, 0, 0, 1])
    let id = UUID()
    #expect(try stored(id, "v")?.key.count == 16)
    let page = try stored(Page(title: "/b", sizes: [1]), 5)
    #expect(page?.key == Array(#"{"sizes":[1],"title":"/b"}"#.utf8))
    #expect(page?.value == Array("5".utf8))
  }

  @Test("Keys are read as they were written")
  func keys() throws {
    func roundTrip<Key: Codable & Hashable & Sendable>(_ keys: [Key]) throws -> Bool {
      let cache: DiskCache<Key, Int> = try scene.cache()
      defer { try? cache.removeAll() }
      for key in keys { try cache.setValue(1, forKey: key) }
      return try Set(cache.keys()) == Set(keys) && cache.count() == keys.count
    }
    #expect(try roundTrip(["a", "\0", "日本"]))
    #expect(try roundTrip([[0], [0, 0], [255]] as [[UInt8]]))
    #expect(try roundTrip([Data([0]), Data([1, 0])]))
    #expect(try roundTrip([0, -1, .max, .min]))
    #expect(try roundTrip([0, -1, .max, .min] as [Int8]))
    #expect(try roundTrip([0, 1, .max] as [UInt64]))
    #expect(try roundTrip([.min, 5, .max] as [Int128]))
    #expect(try roundTrip([UUID(), UUID()]))
    #expect(try roundTrip([Page(title: "x", sizes: []), Page(title: "", sizes: [0])]))
  }

  @Test("Keys that are equal as texts but differ in their bytes are two keys on disk")
  func canonicalEquivalence() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "\u{E9}")
    try cache.setValue(2, forKey: "e\u{301}")
    #expect("\u{E9}" == "e\u{301}")
    #expect(try cache.value(forKey: "\u{E9}") == 1)
    #expect(try cache.value(forKey: "e\u{301}") == 2)
    #expect(try cache.count() == 2)
  }

  @Test("A custom coder is used, and can be transformed")
  func custom() throws {
    let plain = ValueCoder<Int>.custom(
      encode: { [UInt8](String($0).utf8) },
      decode: { bytes in
        guard let number = String(copying: bytes).flatMap({ Int($0) }) else {
          throw CodingFailure("it is no number")
        }
        return number
      })
    let turned = plain.transformed(
      encode: { [UInt8](copying: $0).reversed() }, decode: { [UInt8](copying: $0).reversed() })
    let cache = try scene.cache(keys: KeyCoder<String>.string, values: turned.tagged(3))
    try cache.setValue(123, forKey: "a")
    #expect(try cache.value(forKey: "a") == 123)
    #expect(try cache.withValue(forKey: "a") { [UInt8](copying: $0) } == Array("321".utf8))
    try cache.close()
    let other = try scene.cache(keys: KeyCoder<String>.string, values: plain.tagged(3))
    #expect(try other.value(forKey: "a") == 321)
  }

  @Test("A coder's error becomes the cache's, with its type, its case or its own words")
  func failures() throws {
    func cache(
      _ error: any Error & Sendable
    ) throws(StoreError) -> DiskCache<String, Int> {
      try scene.cache(
        keys: .custom(
          encode: { key in
            if key == "bad" { throw error }
            return Array(key.utf8)
          }, decode: { _ in throw error }),
        values: .custom(
          encode: { value in
            if value < 0 { throw error }
            return [UInt8(value)]
          }, decode: { _ in throw error }))
    }
    func check(_ error: any Error & Sendable, _ reason: String) throws {
      let cache = try cache(error)
      defer { try? cache.close() }
      #expect(throws: StoreError.unencodable(reason: "the key: \(reason)")) {
        try cache.setValue(1, forKey: "bad")
      }
      #expect(throws: StoreError.unencodable(reason: "the key: \(reason)")) {
        try cache.value(forKey: "bad")
      }
      #expect(throws: StoreError.unencodable(reason: "the value: \(reason)")) {
        try cache.setValue(-1, forKey: "good")
      }
      #expect(try !cache.contains("good"))
      let version = try cache.setValue(1, forKey: "good")
      #expect(throws: StoreError.undecodable(version: version, reason: reason)) {
        try cache.value(forKey: "good")
      }
      try cache.removeAll()
    }
    try check(CodingFailure("in words"), "in words")
    try check(Trouble.telling("the secret value"), "the coder threw Trouble.telling")
    try check(Trouble.plain, "the coder threw Trouble.plain")
    try check(Speaking.plain, "the coder threw Speaking")
    try check(Showing.telling("the secret value"), "the coder threw Showing")
    try check(Struct(value: "the secret value"), "the coder threw Struct")
    // The library's own errors say what is wrong.
    try check(StoreError.closed(path: "/a"), "/a: the store was closed")
    try check(
      StoreError.undecodable(
        version: 1, reason: "it was written with the tag 2, not 3"),
      "the value of version 1 could not be decoded: it was written with the tag 2, not 3")
  }

  @Test("Every error says in words what is wrong and where")
  func texts() {
    let failure = SystemFailure(call: "open", path: "/c", errorNumber: 13, reason: "no access")
    let texts: [(StoreError, String)] = [
      (.system(failure), "open /c: no access (errno 13)"),
      (.unencodable(reason: "r"), "not encodable: r"),
      (.undecodable(version: 7, reason: "r"), "the value of version 7 could not be decoded: r"),
      (
        .invalidConfiguration(option: "name", reason: "it is empty"),
        "configuration: name: it is empty"
      ),
      (
        .inside("/c/s/", "/c/s/n"),
        "/c/s/n: not usable: it is inside the directory of a store, /c/s/"
      ),
      (.cancelled, "the task was cancelled before the work began"),
      (.circularLoad, "a load waits for itself"),
    ]
    for (error, text) in texts { #expect(error.description == text) }
    let error = #expect(throws: StoreError.self) {
      try CacheLocation.check("a/\u{1b}[31m")
    }
    #expect(error?.description == #"configuration: name: "a/\u{1B}[31m" has a slash"#)
  }

  @Test("JSON that is nested too deeply is an error, not a trap; brackets in texts do not count")
  func deepJSON() throws {
    let scene = DiskScene()
    let raw: DiskCache<String, String> = try scene.cache()
    for depth in [501, 513, 100_000] {
      try raw.setValue(String(repeating: "[", count: depth), forKey: "key \(depth)")
      try raw.setValue("x", forKey: String(repeating: "{\"a\":", count: min(depth, 600)))
    }
    let text =
      "\"" + String(repeating: "[", count: 600) + "\\\"" + String(repeating: "{", count: 600) + "\""
    try raw.setValue(text, forKey: "text")
    try raw.close()
    let cache: DiskCache<String, [String]> = try scene.cache()
    for depth in [501, 513, 100_000] {
      #expect(throws: StoreError.self) { try cache.value(forKey: "key \(depth)") }
    }
    try cache.close()
    let texts: DiskCache<String, Optional<String>> = try scene.cache()
    #expect(try texts.value(forKey: "text")??.utf8.count == 1201)
    try texts.close()
    let keys: DiskCache<[String], String> = try scene.cache()
    #expect(try keys.keys().isEmpty)
  }

  @Test("JSON that the decoder would convert is an error; in JSON 5, brackets in comments count")
  func strangeJSON() throws {
    // In UTF-16, the first letter looks like a quotation mark.
    let deep = "[\"\u{122}\"," + String(repeating: "[", count: 5000)
    for encoding in [
      String.Encoding.utf16, .utf16LittleEndian, .utf16BigEndian, .utf32, .utf32LittleEndian,
    ] {
      let data = try #require(deep.data(using: encoding))
      #expect(throws: CodingFailure.self) { try checkNesting(ofJSON: data) }
    }
    #expect(throws: CodingFailure.self) { try checkNesting(ofJSON: Data([0xFE, 0xFF, 1, 0x22])) }
    func check(_ text: String, isJSON5: Bool) -> Bool {
      (try? checkNesting(ofJSON: Data(text.utf8), isJSON5: isJSON5)) != nil
    }
    let half = String(repeating: "[", count: 300)
    let closing = String(repeating: "]", count: 300)
    for text in ["'\"'", "'\(closing)',", "// \"\n", "/*\(closing)*/"] {
      #expect(!check(half + text + half, isJSON5: true))
    }
    #expect(check(half + closing + half + closing, isJSON5: true))
    #expect(check(half + "\"'/\"" + closing + half + closing, isJSON5: true))
  }

  @Test("No error shows bytes of a value or a key")
  func discretion() throws {
    let cache: DiskCache<String, [String: [Int]]> = try scene.cache()
    try cache.setValue(["secret": [1]], forKey: "private")
    try cache.close()
    let other: DiskCache<String, [String: [String]]> = try scene.cache()
    let error = #expect(throws: StoreError.self) { try other.value(forKey: "private") }
    let text = try "\(#require(error)) \(String(reflecting: #require(error)))"
    #expect(!text.contains("secret") && !text.contains("private"), "\(text)")
    #expect(text.contains("String"))
    let texts = try scene.cache(
      at: scene("texts"), keys: KeyCoder<String>.string, values: ValueCoder<[UInt8]>.bytes)
    try texts.setValue([0x73, 0xFF], forKey: "private")
    try texts.close()
    let strings: DiskCache<String, String> = try scene.cache(at: scene("texts"))
    #expect(
      throws: StoreError.undecodable(version: 1, reason: "it is not UTF-8")
    ) {
      try strings.value(forKey: "private")
    }
  }

  /// A value with parts whose names are in the source, and one whose names are data.
  private struct Book<Number: Codable & Sendable>: Codable, Sendable {
    struct Chapter: Codable, Sendable {
      var title: String
      var pages: [Number]
    }
    var chapters: [Chapter]
    var notes: [String: [Number]] = [:]

    init(_ pages: [Number], notes: [String: [Number]] = [:]) {
      chapters = [Chapter(title: "", pages: []), Chapter(title: "", pages: pages)]
      self.notes = notes
    }
  }

  @Test("An error of a value names the invalid part, and no key of a dictionary")
  func codingPath() throws {
    func reason(
      _ write: (DiskCache<String, Book<String>>) throws -> Void
    ) throws -> String? {
      let scene = DiskScene()
      let written: DiskCache<String, Book<String>> = try scene.cache()
      try write(written)
      try written.close()
      let read: DiskCache<String, Book<Int>> = try scene.cache()
      let error = #expect(throws: StoreError.self) { try read.value(forKey: "book") }
      guard case .undecodable(1, let reason) = error else { return "\(error as Any)" }
      return reason
    }
    #expect(
      try reason { try $0.setValue(Book(["1"]), forKey: "book") }
        == "no Int where one was expected, at chapters[1].pages[0]")
    #expect(
      try reason { try $0.setValue(Book([], notes: ["secret": ["1"]]), forKey: "book") }
        == "no Int where one was expected, at notes[…][0]")
    let scene = DiskScene()
    let raw: DiskCache<String, String> = try scene.cache()
    try raw.setValue(#"{"chapters":[{"pages":[]}]}"#, forKey: "book")
    try raw.setValue(#"{"chapters":null}"#, forKey: "null")
    try raw.setValue("secret", forKey: "nonsense")
    try raw.close()
    let books: DiskCache<String, Book<Double>> = try scene.cache()
    let reasons = [
      "book": "a value is missing, at chapters[0].title",
      "null": "nothing where Array<Any> was expected, at chapters",
      "nonsense": "the bytes do not have the coder's format",
    ]
    for (key, reason) in reasons {
      let error = #expect(throws: StoreError.self) { try books.value(forKey: key) }
      guard case .undecodable(_, let found) = error else {
        Issue.record("\(error as Any)")
        continue
      }
      #expect(found == reason)
    }
    let error = #expect(throws: StoreError.self) {
      try books.setValue(Book([1, 2, .nan]), forKey: "book")
    }
    guard case .unencodable(let found) = error else {
      Issue.record("\(error as Any)")
      return
    }
    // The Foundation of Swift 6.2 leaves out `[2]`.
    #expect(
      found.hasPrefix(
        "the value: the coder's format cannot represent a value, such as NaN in JSON, at "
          + "chapters[1].pages"))
  }

  @Test("Keys of the wrong length are left out of an iteration")
  func foreignKeys() throws {
    do {
      let store = try scene.store()
      try store.setValue("1", forKey: [1, 2, 3] as [UInt8])
      try store.setValue("2", forKey: [0, 0, 0, 0, 0, 0, 0, 9] as [UInt8])
      try store.setValue("3", forKey: [UInt8](repeating: 1, count: 16))
      try store.close()
    }
    let log = Record<String>()
    let numbers: DiskCache<Int, Int> = try scene.cache {
      $0.store.log = DiagnosticLog { log.add($0.text) }
    }
    var keys: [Int] = []
    #expect(
      try numbers.forEachKey {
        keys.append($0)
        return .next
      } == 2)
    #expect(keys == [9])
    #expect(try numbers.keys() == [9])
    #expect(try numbers.value(forKey: 9) == 2)
    #expect(log.all.contains { $0.contains("3 bytes instead of 8") })
    #expect(try numbers.count() == 3)
  }
}
