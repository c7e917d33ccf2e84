internal import CairnStore

/// Encodes and decodes the values of a ``DiskCache``.
///
///     let coder = ValueCoder<Page>.json().tagged(2)
///     let packed = coder.transformed(encode: compress, decode: decompress)
///
/// A coder's closures may run on any thread, and on several at once, with no lock held. They may
/// throw any error. The cache then throws a ``/CairnStore/StoreError`` with a reason that is safe
/// to log: the reason of a ``CodingFailure``, or the type and case of any other error. For a
/// `DecodingError`, the reason says what is missing or wrong, and where: `users[3].age`.
public struct ValueCoder<Value: Sendable>: Sendable {
  /// Calls its closure once, with the bytes of a value.
  @usableFromInline
  typealias Encoding =
    @Sendable (_ value: Value, _ body: (RawSpan) throws(StoreError) -> Void) throws(StoreError) ->
    Void
  @usableFromInline
  typealias Decoding = @Sendable (RawSpan) throws -> Value

  /// A number that is stored with every written value and identifies its type. Change the tag when
  /// the type or its encoding changes. 0, the default, means no tag.
  ///
  /// A value with another tag is never decoded. Depending on
  /// ``DiskCacheConfiguration/dropsUnreadableValues``, a read throws
  /// ``/CairnStore/StoreError/undecodable(version:reason:)``, or is a miss that removes the value.
  public let tag: UInt32
  @usableFromInline let withBytes: Encoding
  @usableFromInline let decode: Decoding

  init(tag: UInt32 = 0, withBytes: @escaping Encoding, decode: @escaping Decoding) {
    self.tag = tag
    self.withBytes = withBytes
    self.decode = decode
  }

  /// A custom coder.
  ///
  ///     let coder = ValueCoder<Version>.custom { Array($0.text.utf8) } decode: { bytes in
  ///       guard let text = String(copying: bytes) else { throw CodingFailure("it is not UTF-8") }
  ///       return Version(text)
  ///     }
  ///
  /// `String(copying:)`, `Data(copying:)` and `[UInt8](copying:)` copy the bytes once.
  ///
  /// - Parameters:
  ///   - encode: encodes a value.
  ///   - decode: decodes a value from bytes in the store's memory, which are valid only until this
  ///     closure returns.
  public static func custom(
    encode: @escaping @Sendable (Value) throws -> [UInt8],
    decode: @escaping @Sendable (RawSpan) throws -> Value
  ) -> ValueCoder {
    ValueCoder(
      withBytes: { (value, body) throws(StoreError) in
        try encoded { try encode(value) }.withBytes(body)
      }, decode: decode)
  }

  /// The same coder with another tag.
  public func tagged(_ tag: UInt32) -> ValueCoder {
    ValueCoder(tag: tag, withBytes: withBytes, decode: decode)
  }

  /// A coder that transforms the bytes of this coder, for example to compress or encrypt them.
  ///
  ///     let packed = coder.transformed { pack([UInt8](copying: $0)) } decode: { unpack([UInt8](copying: $0)) }
  ///
  /// - Parameters:
  ///   - encode: transforms the bytes of this coder before they are written.
  ///   - decode: reverses what `encode` did, before this coder decodes the bytes.
  public func transformed(
    encode: @escaping @Sendable (RawSpan) throws -> [UInt8],
    decode: @escaping @Sendable (RawSpan) throws -> [UInt8]
  ) -> ValueCoder {
    let (inner, innerDecode) = (withBytes, self.decode)
    return ValueCoder(
      tag: tag,
      withBytes: { (value, body) throws(StoreError) in
        try inner(value) { (bytes) throws(StoreError) in
          try encoded { try encode(bytes) }.withBytes(body)
        }
      },
      decode: { bytes in try decode(bytes).withBytes { try innerDecode($0) } })
  }
}

/// Calls a value coder's closure, and converts its error.
private func encoded(_ body: () throws -> [UInt8]) throws(StoreError) -> [UInt8] {
  do { return try body() } catch { throw .unencodable(reason: "the value: " + codingReason(error)) }
}
