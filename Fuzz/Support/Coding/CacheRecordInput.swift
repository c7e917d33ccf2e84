import CairnEssentials

/// A record as a cache on disk may find it, and the cache that reads it, made from any bytes:
///
///     0        1         2         3          4 …
///     ┌────────┬─────────┬─────────┬──────────┬─────┬──────────┬───────
///     │ coders │ options │ of key  │ of metad.│ key │ metadata │ value
///     └────────┴─────────┴─────────┴──────────┴─────┴──────────┴───────
///
/// If fewer bytes are left than a length says, the part has what is left. A key is never empty.
package struct CacheRecordInput: Sendable {
  package var keyCoder: UInt8 = 0
  package var valueCoder: UInt8 = 0
  package var options: UInt8 = 0
  package var key: [UInt8] = []
  package var metadata: [UInt8] = []
  package var value: [UInt8] = []

  package static let keyCoderCount = 7
  package static let valueCoderCount = 8

  package init() {}

  package init(_ input: [UInt8]) {
    var rest = input[...]
    func byte() -> UInt8 { rest.popFirst() ?? 0 }
    func bytes(_ count: UInt8) -> [UInt8] {
      defer { rest = rest.dropFirst(Int(count)) }
      return Array(rest.prefix(Int(count)))
    }
    let coders = byte()
    keyCoder = coders >> 4
    valueCoder = coders & 0xF
    options = byte()
    let (ofKey, ofMetadata) = (byte(), byte())
    key = bytes(ofKey)
    if key.isEmpty { key = [0x41] }
    metadata = bytes(ofMetadata)
    value = Array(rest)
  }

  package var encoded: [UInt8] {
    [keyCoder << 4 | valueCoder, options, UInt8(key.count), UInt8(metadata.count)]
      + key + metadata + value
  }

  /// The tag of the cache's coder.
  var tag: UInt32 { options & 1 == 0 ? 0 : 7 }
}

/// A type as programs store them.
struct CodedPage: Codable, Equatable, Sendable {
  var title: String
  var sizes: [Int8]
  var ratio: Double?
  var parts: [String: UInt64]
  var inner: [CodedPage]?
}

/// The expected result for some bytes.
enum Decoded<Value> {
  case value(Value)
  case failure
  /// Either result is right: the brackets may be nested too deeply for Foundation.
  case either

  static func optional(_ value: Value?) -> Decoded { value.map { .value($0) } ?? .failure }
}

extension Decoded where Value: Decodable {
  /// The value that Foundation decodes from JSON in UTF-8. Coders refuse UTF-16 and UTF-32, which
  /// begin with a mark or have a zero byte.
  static func json(_ bytes: [UInt8]) -> Decoded {
    if bytes.contains(0) || bytes.starts(with: [0xFE, 0xFF]) || bytes.starts(with: [0xFF, 0xFE]) {
      return .failure
    }
    let brackets = bytes.count { $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: "{") }
    if brackets > 500 { return .either }
    return optional(try? JSONDecoder().decode(Value.self, from: Data(bytes)))
  }
}

/// The metadata of a record, parsed as Docs/FileFormat.md describes it and not by the cache's own
/// code.
enum ReadMetadata: Equatable {
  case ofCache(tag: UInt32, rest: [UInt8])
  case foreign

  init(_ bytes: [UInt8]) {
    if bytes.isEmpty {
      self = .ofCache(tag: 0, rest: [])
    } else if bytes.count >= 8, Array(bytes[0..<4]) == [0xCA, 1, 0, 0] {
      self = .ofCache(
        tag: UInt32(truncatingIfNeeded: bytes.number(at: 4, count: 4)), rest: Array(bytes[8...]))
    } else {
      self = .foreign
    }
  }
}
