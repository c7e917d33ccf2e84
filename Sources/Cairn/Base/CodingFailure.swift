internal import CairnStore

/// What a coder of one's own throws to say why, in words that may be logged.
///
/// Of any other error only the type and the case are kept, since the rest may tell of the value; of a `DecodingError` and
/// an `EncodingError` also where in the value it is, without the keys of dictionaries.
public struct CodingFailure: Error, Sendable, Hashable {
  /// Why the coder failed. It may be logged, so it should say nothing of the value.
  public var reason: String

  /// Makes a failure.
  ///
  /// - Parameter reason: why, in words that may be logged.
  public init(_ reason: String) { self.reason = reason }
}

/// What may be said of an error that a coder threw.
func codingReason(_ error: any Error) -> String {
  switch error {
  case let failure as CodingFailure: return failure.reason
  // Neither says anything of keys or values.
  case let error as CacheError: return error.description
  case let error as StoreError: return error.description
  default: break
  }
  // What these say in words may quote the value.
  switch error {
  case DecodingError.typeMismatch(let type, let context):
    return "no \(type) where one was expected" + place(context.codingPath)
  case DecodingError.valueNotFound(let type, let context):
    return "nothing where \(type) was expected" + place(context.codingPath)
  case DecodingError.keyNotFound(let key, let context):
    return "a part is missing" + place(context.codingPath + [key])
  case DecodingError.dataCorrupted(let context):
    return context.codingPath.isEmpty
      ? "the bytes are not of the coder's format"
      : "what is there cannot be the value" + place(context.codingPath)
  case EncodingError.invalidValue(_, let context):
    return "the coder's format has no form for a value, as JSON has none for NaN"
      + place(context.codingPath)
  default: break
  }
  return "the coder threw \(name(of: error))"
}

/// Where in a value something is wrong: `, at users[3].age`. Nothing for the value as a whole.
private func place(_ path: [any CodingKey]) -> String {
  var text = ""
  for key in path {
    if let name = sourceName(of: key) {
      text += (text.isEmpty ? "" : ".") + name
    } else if let index = key.intValue, key.stringValue == "Index \(index)" {
      // Foundation's coders give the places in arrays such names.
      text += "[\(index)]"
    } else {
      text += "[…]"
    }
  }
  return text.isEmpty ? "" : ", at \(text)"
}

/// The name of a key that stands in the source: a case of an enumeration, as the compiler makes `CodingKeys`. Any other
/// key may be one of a dictionary, which is a part of the value.
private func sourceName(of key: any CodingKey) -> String? {
  if key is any CustomReflectable { return nil }
  let mirror = Mirror(reflecting: key)
  return mirror.displayStyle == .enum && mirror.children.isEmpty ? key.stringValue : nil
}

/// The type of an error, and its case where it has cases; nothing of what it holds.
private func name(of error: any Error) -> String {
  let type = String(describing: type(of: error))
  // One that says by itself how it is to be shown may show what it holds.
  if error is any CustomReflectable { return type }
  let mirror = Mirror(reflecting: error)
  guard mirror.displayStyle == .enum else { return type }
  if let name = mirror.children.first?.label { return "\(type).\(name)" }
  // A case that holds nothing is shown by its name, unless it has words of its own.
  if error is any CustomStringConvertible || error is any CustomDebugStringConvertible
    || error is any TextOutputStreamable
  {
    return type
  }
  return "\(type).\(error)"
}
