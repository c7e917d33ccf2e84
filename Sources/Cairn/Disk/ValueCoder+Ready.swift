public import CairnEssentials
internal import CairnStore

extension ValueCoder where Value: ByteSource {
  /// The bytes, unchanged, passed to the store without a copy.
  init(passing decode: @escaping Decoding) {
    self.init(
      withBytes: { (value, body) throws(StoreError) in try value.withBytes(body) }, decode: decode)
  }
}

extension ValueCoder<[UInt8]> {
  /// The bytes, unchanged. A write and a read each copy them once.
  package static var bytes: ValueCoder { ValueCoder(passing: { [UInt8](copying: $0) }) }
}

extension ValueCoder<Data> {
  /// The bytes, unchanged. A write and a read each copy them once.
  package static var data: ValueCoder { ValueCoder(passing: { Data(copying: $0) }) }
}

extension ValueCoder<String> {
  /// The text as UTF-8. A write and a read each copy it once. Bytes that are not UTF-8 cannot be
  /// decoded.
  package static var string: ValueCoder {
    ValueCoder(passing: { bytes in
      guard let text = String(copying: bytes) else { throw CodingFailure("it is not UTF-8") }
      return text
    })
  }
}

extension ValueCoder where Value: Codable {
  /// Foundation's JSON: the slowest form, but the one that most other programs can read.
  ///
  /// - Parameters:
  ///   - encoder: the encoder. Many threads use it at once, so do not change it afterwards.
  ///   - decoder: the decoder, with the same restriction. If it allows JSON5, a value may have at
  ///     most 500 arrays and objects after the first comment or text in single quotes.
  public static func json(
    encoder: JSONEncoder = JSONEncoder(), decoder: JSONDecoder = JSONDecoder()
  ) -> ValueCoder {
    .data(
      encode: { try encoder.encode($0) },
      decode: { data in
        try checkNesting(ofJSON: data, isJSON5: decoder.allowsJSON5)
        return try decoder.decode(Value.self, from: data)
      })
  }

  /// Foundation's binary property list. The value is wrapped in a one-element array, because a
  /// property list cannot be a bare number or string.
  ///
  /// Use it only for values that this coder has written: Foundation's decoder can trap on
  /// maliciously crafted property lists. Damage on the disk is no problem, because checksums detect
  /// it before decoding.
  public static func propertyList() -> ValueCoder {
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .binary
    let decoder = PropertyListDecoder()
    return .data(
      encode: { try encoder.encode([$0]) },
      decode: { data in
        guard let value = try decoder.decode([Value].self, from: data).first else {
          throw CodingFailure("the property list is empty")
        }
        return value
      })
  }

  private static func data(
    encode: @escaping @Sendable (Value) throws -> Data,
    decode: @escaping @Sendable (Data) throws -> Value
  ) -> ValueCoder {
    ValueCoder(
      withBytes: { (value, body) throws(StoreError) in
        let data: Data
        do { data = try encode(value) } catch {
          throw .unencodable(reason: "the value: " + codingReason(error))
        }
        try data.withBytes(body)
      }, decode: { try decode(Data(copying: $0)) })
  }

  /// The default: `[UInt8]`, `Data` and `String` unchanged, and all other types as JSON.
  ///
  /// JSON of a small struct takes about 10 µs to encode or decode, and of 50 structs about 250 µs. It
  /// stores `Data` fields as Base64: 100 KB take 135 KB, 0.4 ms to encode and 0.7 ms to decode. For
  /// large `Data` fields, `propertyList()` takes a fiftieth and a fifth of that, but for other types
  /// 1.1 to 2.7 times as long as JSON.
  public static var standard: ValueCoder {
    let passing: [Any] = [
      ValueCoder<[UInt8]>.bytes, ValueCoder<Data>.data, ValueCoder<String>.string,
    ]
    for case let coder as ValueCoder in passing { return coder }
    return .json()
  }
}

/// Throws if JSON is nested too deeply for Foundation's decoder, which traps beyond 512 levels, or
/// is not UTF-8: the decoder would convert it, and find other brackets.
///
/// - Parameter isJSON5: whether comments and single quotes are allowed. From the first one on, no
///   bracket counts as closing, because it may be in a comment or a text.
func checkNesting(ofJSON data: Data, isJSON5: Bool = false) throws(CodingFailure) {
  if data.starts(with: [0xFE, 0xFF]) || data.starts(with: [0xFF, 0xFE]) {
    throw CodingFailure("it is not UTF-8")
  }
  var (depth, isInText, isEscaped, isUnclear) = (0, false, false, false)
  for byte in data {
    // Without a mark at its beginning, UTF-16 or UTF-32 has a zero in the first four bytes.
    if byte == 0 { throw CodingFailure("it has a zero byte") }
    if isInText && !isUnclear {
      switch byte {
      case _ where isEscaped: isEscaped = false
      case UInt8(ascii: "\\"): isEscaped = true
      case UInt8(ascii: "\""): isInText = false
      default: break
      }
      continue
    }
    switch byte {
    case UInt8(ascii: "\""): isInText = true
    case UInt8(ascii: "["), UInt8(ascii: "{"):
      depth += 1
      if depth > 500 { throw CodingFailure("it is nested more than 500 levels deep") }
    case UInt8(ascii: "]"), UInt8(ascii: "}"): if !isUnclear { depth -= 1 }
    case UInt8(ascii: "'"), UInt8(ascii: "/"): if isJSON5 { isUnclear = true }
    default: break
    }
  }
}
