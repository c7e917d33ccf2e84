internal import CairnStore

/// An error that a custom coder can throw, with a reason that is safe to log.
///
/// For any other error, the cache reports only the type and the case, because the rest may reveal
/// the value. For a `DecodingError` or an `EncodingError`, it also reports the place in the value,
/// without dictionary keys.
public struct CodingFailure: Error, Sendable, Hashable {
  /// Why the coder failed. It may be logged, so it must not reveal the value.
  public var reason: String

  /// Makes a failure.
  ///
  /// - Parameter reason: the reason, in words that are safe to log.
  public init(_ reason: String) { self.reason = reason }
}

extension StoreError {
  /// Converts a value coder's error.
  @usableFromInline
  static func undecodable(_ error: any Error, version: UInt64) -> StoreError {
    .undecodable(version: version, reason: codingReason(error))
  }

  static func otherTag(_ found: UInt32, _ expected: UInt32, version: UInt64) -> StoreError {
    .undecodable(version: version, reason: "it was written with the tag \(found), not \(expected)")
  }
}

/// A description of a coder's error that is safe to log.
func codingReason(_ error: any Error) -> String {
  switch error {
  case let failure as CodingFailure: return failure.reason
  // This error reveals no values, and no key but that of a conflict.
  case let error as StoreError: return error.description
  default: break
  }
  // The descriptions of these errors may quote the value.
  switch error {
  case DecodingError.typeMismatch(let type, let context):
    return "no \(type) where one was expected" + place(context.codingPath)
  case DecodingError.valueNotFound(let type, let context):
    return "nothing where \(type) was expected" + place(context.codingPath)
  case DecodingError.keyNotFound(let key, let context):
    return "a value is missing" + place(context.codingPath + [key])
  case DecodingError.dataCorrupted(let context):
    return context.codingPath.isEmpty
      ? "the bytes do not have the coder's format"
      : "the value there is invalid" + place(context.codingPath)
  case EncodingError.invalidValue(_, let context):
    return "the coder's format cannot represent a value, such as NaN in JSON"
      + place(context.codingPath)
  default: break
  }
  return "the coder threw \(name(of: error))"
}

/// The place of the error in a value: `, at users[3].age`. Empty for the value as a whole.
private func place(_ path: [any CodingKey]) -> String {
  var text = ""
  for key in path {
    if let name = sourceName(of: key) {
      text += (text.isEmpty ? "" : ".") + name
    } else if let index = key.intValue, key.stringValue == "Index \(index)" {
      // Foundation's coders name places in arrays like this.
      text += "[\(index)]"
    } else {
      text += "[…]"
    }
  }
  return text.isEmpty ? "" : ", at \(text)"
}

/// The name of a key that the source code defines: an enumeration case, as in synthesised
/// `CodingKeys`. `nil` for any other key, because it may come from a dictionary in the value.
private func sourceName(of key: any CodingKey) -> String? {
  if key is any CustomReflectable { return nil }
  let mirror = Mirror(reflecting: key)
  return mirror.displayStyle == .enum && mirror.children.isEmpty ? key.stringValue : nil
}

/// The type of an error and, for an enumeration, its case, but not its contents.
private func name(of error: any Error) -> String {
  let type = String(describing: type(of: error))
  // A type with a custom mirror may show its contents.
  if error is any CustomReflectable { return type }
  let mirror = Mirror(reflecting: error)
  guard mirror.displayStyle == .enum else { return type }
  if let name = mirror.children.first?.label { return "\(type).\(name)" }
  // A case without a payload prints as its name, unless its type has a custom description.
  if error is any CustomStringConvertible || error is any CustomDebugStringConvertible
    || error is any TextOutputStreamable
  {
    return type
  }
  return "\(type).\(error)"
}
