import Cairn
import Foundation

extension NearCoder<[UInt8]> {
  /// Stores bytes unchanged.
  public static var bytes: NearCoder { NearCoder(encode: { $0 }, decode: { $0 }) }
}

extension NearCoder<String> {
  /// Stores text as UTF-8.
  public static var string: NearCoder {
    NearCoder(
      encode: { Array($0.utf8) },
      decode: { bytes in
        guard let text = String(validating: bytes, as: UTF8.self) else {
          throw CodingFailure("it is not UTF-8")
        }
        return text
      })
  }
}

extension NearCoder where Value: Codable {
  /// Stores values as JSON.
  public static func json() -> NearCoder {
    NearCoder(
      encode: { [UInt8](try JSONEncoder().encode($0)) },
      decode: { try JSONDecoder().decode(Value.self, from: Data($0)) })
  }
}
