internal import CairnStore

/// How values become bytes and come back: what a ``DiskCache`` is given with its values' type.
///
///     let coder = ValueCoder<Page>.json().tagged(2)
///     let packed = coder.transformed(encode: compress, decode: decompress)
///
/// Its closures may run on any thread, several at once, with no lock held. They may throw anything; the cache
/// throws ``CacheError`` then, with no more of the error than its type and case, or with the words of a
/// ``CodingFailure``. Of a `DecodingError` it says what is missing or wrong and where: `users[3].age`.
public struct ValueCoder<Value: Sendable>: Sendable {
  /// Calls its closure with the bytes of a value, once.
  @usableFromInline
  typealias Encoding =
    @Sendable (_ value: Value, _ body: (RawSpan) throws(CacheError) -> Void) throws(CacheError) ->
    Void
  @usableFromInline
  typealias Decoding = @Sendable (RawSpan) throws -> Value

  /// What is kept beside every value that is written, to know it by later: a number of one's own that
  /// changes with the type or its form. 0, the default: none.
  ///
  /// A read of a value with another tag is a ``CacheError/changedType(version:found:expected:)``, or a
  /// miss that removes it, as ``DiskCacheConfiguration/changedTypePolicy`` says; the bytes are not
  /// decoded.
  public let tag: UInt32
  @usableFromInline let withBytes: Encoding
  @usableFromInline let decode: Decoding

  init(tag: UInt32 = 0, withBytes: @escaping Encoding, decode: @escaping Decoding) {
    self.tag = tag
    self.withBytes = withBytes
    self.decode = decode
  }

  /// A coder of one's own.
  ///
  ///     let coder = ValueCoder<Version>.custom { Array($0.text.utf8) } decode: { bytes in
  ///       guard let text = String(copying: bytes) else { throw CodingFailure("it is not UTF-8") }
  ///       return Version(text)
  ///     }
  ///
  /// `String(copying:)`, `Data(copying:)` and `[UInt8](copying:)` copy the bytes once.
  ///
  /// - Parameters:
  ///   - encode: makes bytes of a value.
  ///   - decode: makes a value of the bytes, which lie where the store has them and are valid only
  ///     until it returns.
  public static func custom(
    encode: @escaping @Sendable (Value) throws -> [UInt8],
    decode: @escaping @Sendable (RawSpan) throws -> Value
  ) -> ValueCoder {
    ValueCoder(
      withBytes: { (value, body) throws(CacheError) in
        try encoded { try encode(value) }.withBytes(body)
      }, decode: decode)
  }

  /// The same coder with another tag.
  public func tagged(_ tag: UInt32) -> ValueCoder {
    ValueCoder(tag: tag, withBytes: withBytes, decode: decode)
  }

  /// A coder whose bytes are changed on their way: the place for compression or encryption.
  ///
  ///     let packed = coder.transformed { pack([UInt8](copying: $0)) } decode: { unpack([UInt8](copying: $0)) }
  ///
  /// - Parameters:
  ///   - encode: what becomes of the bytes of this coder before they are written.
  ///   - decode: the inverse.
  public func transformed(
    encode: @escaping @Sendable (RawSpan) throws -> [UInt8],
    decode: @escaping @Sendable (RawSpan) throws -> [UInt8]
  ) -> ValueCoder {
    let (inner, innerDecode) = (withBytes, self.decode)
    return ValueCoder(
      tag: tag,
      withBytes: { (value, body) throws(CacheError) in
        try inner(value) { (bytes) throws(CacheError) in
          try encoded { try encode(bytes) }.withBytes(body)
        }
      },
      decode: { bytes in try decode(bytes).withBytes { try innerDecode($0) } })
  }
}

/// What a closure of a value coder made, or what its error becomes.
private func encoded(_ body: () throws -> [UInt8]) throws(CacheError) -> [UInt8] {
  do { return try body() } catch { throw .unencodableValue(reason: codingReason(error)) }
}
