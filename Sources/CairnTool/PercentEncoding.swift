import CairnStore
import CommandText

/// `%NN` for bytes that a name cannot contain.
package enum PercentEncoding {
  private static let percent = UInt8(ascii: "%")

  /// Encodes every byte except letters, digits, `-` and `_`. Dots are encoded too, so no result is
  /// `.`, `..` or a hidden name. No result contains a `+`.
  package static func encode(_ bytes: [UInt8]) -> [UInt8] {
    var encoded: [UInt8] = []
    encoded.reserveCapacity(bytes.count)
    for byte in bytes {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
        encoded.append(byte)
      default:
        encoded.append(percent)
        encoded += DisplayText.hexadecimal(byte).utf8
      }
    }
    return encoded
  }

  /// Decodes every `%NN`, with digits of either case. A percent sign without two hexadecimal digits
  /// after it stays as it is.
  package static func decode(_ bytes: [UInt8]) -> [UInt8] {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(bytes.count)
    var index = 0
    while index < bytes.count {
      if bytes[index] == percent, index + 2 < bytes.count,
        let high = hexadecimalValue(ofDigit: bytes[index + 1]),
        let low = hexadecimalValue(ofDigit: bytes[index + 2])
      {
        decoded.append(high << 4 | low)
        index += 3
      } else {
        decoded.append(bytes[index])
        index += 1
      }
    }
    return decoded
  }
}
