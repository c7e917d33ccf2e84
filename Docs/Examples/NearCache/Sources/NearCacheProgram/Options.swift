import NearCacheTrial

/// Parses options of the form `--name value`.
struct Options {
  private var values: [String: String] = [:]

  init(_ arguments: some Sequence<String>) throws {
    var name: String?
    for argument in arguments {
      if let known = name {
        values[known] = argument
        name = nil
      } else if argument.hasPrefix("--") {
        name = String(argument.dropFirst(2))
      } else {
        throw TrialFailure("unknown argument: \(argument)")
      }
    }
    if let name { throw TrialFailure("--\(name) needs a value") }
  }

  func text(_ name: String) -> String? { values[name] }

  func required(_ name: String) throws -> String {
    guard let value = values[name] else { throw TrialFailure("--\(name) is missing") }
    return value
  }

  func number(_ name: String, default standard: Int? = nil) throws -> Int {
    if values[name] == nil, let standard { return standard }
    guard let number = Int(try required(name)) else {
      throw TrialFailure("--\(name) is not a number: \(try required(name))")
    }
    return number
  }
}
