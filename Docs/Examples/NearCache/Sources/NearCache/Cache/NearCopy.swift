import Cairn

/// A near copy of a value.
public struct NearCopy<Value: Sendable>: Sendable {
  /// The value.
  public var value: Value
  /// The session of invalidations in which the value was requested from the engine.
  @usableFromInline var session: UInt64
  /// The time before the request to the engine or the origin.
  var asked: Timestamp
  /// The same time, by `bootTime`. Not stored on disk.
  @usableFromInline var moment: Int64 = .max
}

extension NearCopy {
  init(_ value: Value, _ session: UInt64, _ asked: Asked) {
    self.init(value: value, session: session, asked: asked.date, moment: asked.moment)
  }
}

/// The time before a request to the engine or the origin.
struct Asked: Sendable {
  let date = Timestamp.now
  /// By `bootTime`.
  let moment = bootTime()
}

extension NearCopy {
  private static var headSize: Int { 16 }

  /// Encodes the session and the time, in eight little-endian bytes each, followed by the value.
  static func coder(_ coder: NearCoder<Value>) -> ValueCoder<NearCopy> {
    ValueCoder.custom { copy in
      let head = [copy.session, UInt64(bitPattern: copy.asked.millisecondsSinceEpoch)]
      let value = try coder.encode(copy.value)
      var bytes: [UInt8] = []
      bytes.reserveCapacity(headSize + value.count)
      for word in head {
        for index in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: word >> (8 * index))) }
      }
      return bytes + value
    } decode: { span in
      let bytes = [UInt8](copying: span)
      guard bytes.count >= headSize else { throw CodingFailure("it is too short") }
      func word(_ start: Int) -> UInt64 {
        bytes[start..<start + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
      }
      return NearCopy(
        value: try coder.decode(Array(bytes[headSize...])), session: word(0),
        asked: Timestamp(millisecondsSinceEpoch: Int64(bitPattern: word(8))))
    }
  }
}

/// A value and its source.
public struct NearAnswer<Value: Sendable>: Sendable {
  public enum Source: Sendable, Hashable {
    /// A fresh near copy.
    case near
    /// The engine or the origin, by a load that this call began or joined.
    case loaded
    /// A near copy that may be outdated, which the load policy allows.
    case stale
  }

  public var value: Value
  public var source: Source

  @usableFromInline
  init(value: Value, source: Source) {
    self.value = value
    self.source = source
  }
}
