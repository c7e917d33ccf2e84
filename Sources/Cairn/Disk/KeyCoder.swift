internal import CairnEssentials
package import CairnStore

/// Encodes and decodes keys.
///
/// A cache on disk identifies a key by its bytes. Equal keys must always have the same bytes, and
/// different keys must have different bytes. A key has 1 to 65,535 bytes, so an empty string cannot
/// be a key.
///
/// Strings that look the same but differ in their UTF-8, such as "é" in its two forms, are equal in
/// Swift but different keys on disk.
public struct KeyCoder<Key: Sendable>: Sendable {
  /// Calls its closure once, with the bytes of a key.
  @usableFromInline
  typealias Encoding =
    @Sendable (_ key: Key, _ body: (RawSpan) throws(StoreError) -> Void) throws(StoreError) -> Void
  typealias Decoding = @Sendable (RawSpan) throws -> Key

  @usableFromInline let withBytes: Encoding
  private let decoding: Decoding
  /// Whether the memory tier compares keys by their bytes. It compares the keys of built-in coders by
  /// `==`, and strings by their UTF-8.
  let comparesBytes: Bool

  init(
    withBytes: @escaping Encoding, decode: @escaping Decoding, comparesBytes: Bool = true
  ) {
    self.withBytes = withBytes
    decoding = decode
    self.comparesBytes = comparesBytes
  }

  /// The same coder, if two keys are equal exactly if their bytes are.
  fileprivate func comparingByEquality() -> KeyCoder {
    KeyCoder(withBytes: withBytes, decode: decoding, comparesBytes: false)
  }

  /// A custom coder. Each call encodes its key at least once, also if the value is in memory. The
  /// cache decodes keys only for events and for iteration.
  ///
  ///     let coder = KeyCoder<Page.ID>.custom { Array($0.text.utf8) } decode: { bytes in
  ///       guard let text = String(copying: bytes) else { throw CodingFailure("it is not UTF-8") }
  ///       return Page.ID(text)
  ///     }
  public static func custom(
    encode: @escaping @Sendable (Key) throws -> [UInt8],
    decode: @escaping @Sendable (RawSpan) throws -> Key
  ) -> KeyCoder {
    KeyCoder(
      withBytes: { (key, body) throws(StoreError) in
        let bytes: [UInt8]
        do { bytes = try encode(key) } catch {
          throw .unencodable(reason: "the key: " + codingReason(error))
        }
        try bytes.withBytes(body)
      }, decode: decode)
  }

  /// Calls `body` with the bytes of a key, and returns the result.
  func encode<Result: ~Copyable>(
    _ key: Key, _ body: (RawSpan) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    var result: Result?
    try withBytes(key) { (bytes) throws(StoreError) in result = try body(bytes) }
    guard let result = result.take() else {
      preconditionFailure("a coder calls its closure or throws")
    }
    return result
  }

  func decode(_ bytes: RawSpan) throws(StoreError) -> Key {
    do { return try decoding(bytes) } catch {
      throw .undecodable(version: 0, reason: codingReason(error))
    }
  }
}

extension KeyCoder where Key: ByteSource {
  fileprivate init(passing decode: @escaping Decoding) {
    self.init(
      withBytes: { (key, body) throws(StoreError) in try key.withBytes(body) }, decode: decode,
      comparesBytes: false)
  }
}

extension KeyCoder<[UInt8]> {
  /// The bytes, unchanged.
  package static var bytes: KeyCoder { KeyCoder(passing: { [UInt8](copying: $0) }) }
}

extension KeyCoder<Data> {
  /// The bytes, unchanged.
  static var data: KeyCoder { KeyCoder(passing: { Data(copying: $0) }) }
}

extension KeyCoder<String> {
  /// The text as UTF-8, byte for byte.
  package static var string: KeyCoder {
    KeyCoder(passing: { bytes in
      guard let text = String(copying: bytes) else { throw CodingFailure("it is not UTF-8") }
      return text
    })
  }
}

extension KeyCoder where Key: FixedWidthInteger {
  /// All bytes of the number, the most significant first. `Int` and `UInt` have eight bytes.
  package static var integer: KeyCoder {
    let byteCount = Key.bitWidth / 8
    return KeyCoder(
      withBytes: { (key, body) throws(StoreError) in
        if byteCount <= 8 {
          let word = UInt64(truncatingIfNeeded: key) << UInt64(64 - 8 * byteCount)
          return try withBigEndianBytes(of: word) { (bytes) throws(StoreError) in
            try body(bytes.extracting(first: byteCount))
          }
        }
        let bytes = (0..<byteCount).reversed().map {
          UInt8(truncatingIfNeeded: key >> Key($0 * 8))
        }
        try bytes.withBytes(body)
      },
      decode: { bytes in
        guard bytes.byteCount == byteCount else {
          throw CodingFailure("there are \(bytes.byteCount) bytes instead of \(byteCount)")
        }
        return [UInt8](copying: bytes).reduce(Key(0)) { $0 << 8 | Key(truncatingIfNeeded: $1) }
      }, comparesBytes: false)
  }
}

extension KeyCoder<UUID> {
  /// The 16 bytes of the UUID.
  static var uuid: KeyCoder {
    .custom(
      encode: { key in
        let id = key.uuid
        return [
          id.0, id.1, id.2, id.3, id.4, id.5, id.6, id.7,
          id.8, id.9, id.10, id.11, id.12, id.13, id.14, id.15,
        ]
      },
      decode: { bytes in
        let id = [UInt8](copying: bytes)
        guard id.count == 16 else {
          throw CodingFailure("there are \(id.count) bytes instead of 16")
        }
        return UUID(
          uuid: (
            id[0], id[1], id[2], id[3], id[4], id[5], id[6], id[7],
            id[8], id[9], id[10], id[11], id[12], id[13], id[14], id[15]
          ))
      }
    ).comparingByEquality()
  }
}

extension KeyCoder where Key: Codable {
  /// JSON with sorted names.
  package static func json() -> KeyCoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let decoder = JSONDecoder()
    return .custom(
      encode: { [UInt8](try encoder.encode($0)) },
      decode: { bytes in
        let data = Data(copying: bytes)
        try checkNesting(ofJSON: data)
        return try decoder.decode(Key.self, from: data)
      })
  }

  /// The default: `String` as UTF-8, `[UInt8]`, `Data` and `UUID` as their bytes, integers with the
  /// most significant byte first (`Int` and `UInt` have eight bytes), and all other types as JSON
  /// with sorted names.
  ///
  /// JSON of a small struct takes a few microseconds for each call, also if the value is in memory,
  /// and the others take nearly nothing: where that counts, use a string as the key, or a `custom`
  /// coder. JSON is no form for keys with sets, whose order differs between processes, or with
  /// floating-point numbers, because 0.0 and -0.0 are equal but have different bytes.
  public static var standard: KeyCoder {
    // The common integers are listed here, so that the compiler specialises for them.
    let direct: [Any] = [
      KeyCoder<String>.string, KeyCoder<[UInt8]>.bytes, KeyCoder<Data>.data, KeyCoder<UUID>.uuid,
      KeyCoder<Int>.integer, KeyCoder<UInt>.integer, KeyCoder<Int64>.integer,
      KeyCoder<UInt64>.integer, KeyCoder<Int32>.integer, KeyCoder<UInt32>.integer,
    ]
    for case let coder as KeyCoder in direct { return coder }
    if let type = Key.self as? any (FixedWidthInteger & Sendable).Type {
      func integer<Number: FixedWidthInteger & Sendable>(_ type: Number.Type) -> Any {
        KeyCoder<Number>.integer
      }
      if let coder = integer(type) as? KeyCoder { return coder }
    }
    return .json()
  }
}
