/// What the engine answers to a command.
public enum Reply: Sendable, Hashable {
  case null
  case bytes([UInt8])
  case status(String)
  case integer(Int64)
  case array([Reply])
  /// It refused the command.
  case error(String)
}

/// A command, as its arguments.
public struct Command: Sendable {
  var arguments: [[UInt8]]
  /// For errors: the command and its first argument.
  var name: String

  /// Makes one of bytes.
  ///
  /// - Parameter name: for errors; `nil`: the command and its first argument.
  public init(_ arguments: [[UInt8]], name: String? = nil) {
    self.arguments = arguments
    self.name =
      name
      ?? arguments.prefix(2).map { String(decoding: $0.prefix(100), as: UTF8.self) }
      .joined(separator: " ")
  }

  /// Makes one of texts.
  public init(_ arguments: String...) { self.init(arguments.map { Array($0.utf8) }) }

  /// As it goes over the wire.
  var encoded: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(arguments.reduce(16) { $0 + $1.count + 16 })
    bytes += "*\(arguments.count)\r\n".utf8
    for argument in arguments {
      bytes += "$\(argument.count)\r\n".utf8
      bytes += argument
      bytes += "\r\n".utf8
    }
    return bytes
  }
}
