/// The engine's answer to a command.
public enum Reply: Sendable, Hashable {
  case null
  case bytes([UInt8])
  case status(String)
  case integer(Int64)
  case array([Reply])
  /// The engine refused the command.
  case error(String)
}

/// A command and its arguments.
public struct Command: Sendable {
  var arguments: [[UInt8]]
  /// The command and its first argument, for errors.
  var name: String

  /// Creates a command from bytes.
  ///
  /// - Parameter name: the name in errors; `nil` means the command and its first argument.
  public init(_ arguments: [[UInt8]], name: String? = nil) {
    self.arguments = arguments
    self.name =
      name
      ?? arguments.prefix(2).map { String(decoding: $0.prefix(100), as: UTF8.self) }
      .joined(separator: " ")
  }

  /// Creates a command from texts.
  public init(_ arguments: String...) { self.init(arguments.map { Array($0.utf8) }) }

  /// The command in the wire format.
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
