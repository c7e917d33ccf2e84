import Cairn
import CommandText

/// A parsed command line.
///
/// Options may be anywhere before `--`, as `--name value` or `--name=value`. A lone `-` is an
/// operand. Operands and values of options are bytes, because keys need not be text. If an option
/// is given twice, the last value counts.
struct Invocation {
  /// The first operand of the line.
  var command: Command?
  /// The operands after the command.
  var operands: [[UInt8]] = []
  /// The options and their values, which are empty for options that take none.
  var options: [Option: [UInt8]] = [:]
  /// The first argument that begins with a dash but is not an option.
  private var unknownOption: [UInt8]?
  /// What is wrong with an option. The right help depends on the command, which may come later in
  /// the line.
  private var problem: String?
  /// The first operand, if it is not a command.
  private var unknownCommand: [UInt8]?

  init(_ arguments: [[UInt8]]) {
    var words: [[UInt8]] = []
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      if argument == Array("--".utf8) {
        words += rest
        break
      }
      guard argument.first == UInt8(ascii: "-"), argument.count > 1 else {
        words.append(argument)
        continue
      }
      guard let (option, attached) = Invocation.option(argument) else {
        unknownOption = unknownOption ?? argument
        continue
      }
      if !option.takesValue {
        options[option] = []
        if attached != nil { problem = problem ?? "--\(option.rawValue) takes no value" }
      } else if let value = attached ?? rest.popFirst() {
        options[option] = value
      } else {
        problem = problem ?? "--\(option.rawValue) needs a value"
      }
    }
    if let word = words.first {
      command = Command(rawValue: String(decoding: word, as: UTF8.self))
      if command == nil { unknownCommand = word }
      operands = Array(words.dropFirst())
    }
  }

  /// When to use colour.
  func color() throws(CommandFailure) -> ColorChoice {
    try value(of: .color) ?? .auto
  }

  /// Checks that the first operand, if there is one, is a command.
  func checkCommand() throws(CommandFailure) {
    if let unknownCommand { throw Self.failure(forUnknownCommand: unknownCommand) }
  }

  /// Checks that there is a command, and that it takes these options and operands.
  func check() throws(CommandFailure) {
    if let unknownOption { throw failure(forUnknownOption: unknownOption) }
    if let problem { throw usage(problem) }
    guard let command else { throw usage("a command is missing") }
    let page = command.page
    for option in options.keys.sorted(by: { $0.rawValue < $1.rawValue })
    where !(page.options + Option.common).contains(where: { $0.option == option }) {
      throw usage("\(command.rawValue) has no option --\(option.rawValue)")
    }
    if operands.count < page.operandCounts.lowerBound {
      throw usage("\(page.operandNames[operands.count]) is missing; \(Help.usage(of: command))")
    }
    if operands.count > page.operandCounts.upperBound {
      let extra = operands[page.operandCounts.upperBound]
      throw usage("unexpected argument \(DisplayText.line(extra))")
    }
  }

  /// Other names for commands.
  private static let synonyms = [
    ("put", "set add store write"), ("get", "read cat show"), ("delete", "remove rm del unset"),
    ("increment", "incr count"), ("expire", "ttl touch"), ("keys", "list ls scan"),
    ("load", "restore"), ("stats", "status"), ("top", "watch monitor"),
    ("verify", "check fsck scrub"), ("salvage", "repair recover fix rescue"),
    ("compact", "vacuum gc"), ("backup", "copy cp"),
  ]

  static func failure(forUnknownCommand word: [UInt8]) -> CommandFailure {
    let typed = String(decoding: word, as: UTF8.self)
    let meant =
      synonyms.first { $0.1.split(separator: " ").contains { $0 == typed } }?.0
      ?? nearest(to: typed, in: Command.allCases.map(\.rawValue))
    return .usage(
      "unknown command \(DisplayText.line(word)); "
        + (meant.map { "did you mean cairn \($0)?" } ?? "see cairn help"))
  }

  /// Suggests an option of the command, if there is a command.
  private func failure(forUnknownOption argument: [UInt8]) -> CommandFailure {
    let typed = String(decoding: argument.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self)
    let options = command.map { ($0.page.options + Option.common).map(\.option) }
    let meant = nearest(
      to: typed, in: (options ?? Option.allCases).map { "--" + $0.rawValue })
    let message = "unknown option \(DisplayText.line(argument))"
    guard let meant else { return usage(message) }
    return .usage("\(message); did you mean \(meant)?")
  }

  func has(_ option: Option) -> Bool { options[option] != nil }

  /// A usage error with a hint about where to read more.
  func usage(_ message: String) -> CommandFailure {
    .usage("\(message); see cairn help\(command.map { " \($0.rawValue)" } ?? "")")
  }

  /// The value of an option, parsed by `read`, or `nil` if the option is not given.
  ///
  /// - Parameter kind: what the value must be.
  func value<Value>(
    of option: Option, _ read: ([UInt8]) -> Value?, _ kind: String
  ) throws(CommandFailure) -> Value? {
    guard let text = options[option] else { return nil }
    guard let value = read(text) else {
      throw usage("--\(option.rawValue) must be \(kind), not \(DisplayText.line(text))")
    }
    return value
  }

  func duration(of option: Option) throws(CommandFailure) -> Duration? {
    try value(of: option, Quantity.duration, Quantity.durationKind)
  }

  func positiveNumber(of option: Option) throws(CommandFailure) -> Int? {
    try value(of: option, Quantity.positiveNumber, Quantity.positiveNumberKind)
  }

  /// The value of an option that must be one of a few words, or `nil` if the option is not given.
  func value<Value: RawRepresentable<String>>(
    of option: Option
  ) throws(CommandFailure) -> Value? {
    try value(
      of: option, { Value(rawValue: String(decoding: $0, as: UTF8.self)) },
      option.choices.dropLast().joined(separator: ", ") + " or \(option.choices.last ?? "")")
  }

  /// The operand as the path of a store. The library takes paths as text, so a path that is not
  /// UTF-8 cannot be passed to it.
  func store(at index: Int, named name: String = "STORE") throws(CommandFailure) -> StoreLocation {
    let argument = operands[index]
    if argument.isEmpty { throw usage("\(name) must not be empty") }
    guard let path = String(validating: argument, as: UTF8.self) else {
      throw usage("\(name) must be valid UTF-8: \(DisplayText.line(argument))")
    }
    return StoreLocation(path: path, lockTimeout: try duration(of: .wait) ?? .zero)
  }

  /// How keys are written in a listing.
  func keyFormat() throws(CommandFailure) -> KeyFormat { try value(of: .keyFormat) ?? .escaped }

  /// The operand as a valid key.
  func key(at index: Int) throws(CommandFailure) -> [UInt8] {
    let key = try bytes(operands[index], named: "KEY")
    if key.isEmpty { throw usage("KEY must not be empty") }
    let limit = StoreConfiguration().keyByteLimit
    if key.count > limit { throw usage("KEY has \(key.count) bytes, more than \(limit)") }
    return key
  }

  /// The operands from an index as valid keys.
  func keys(from start: Int) throws(CommandFailure) -> [[UInt8]] {
    var keys: [[UInt8]] = []
    for index in operands.indices.dropFirst(start) { keys.append(try key(at: index)) }
    return keys
  }

  /// The beginning of the keys that a command visits.
  func prefix() throws(CommandFailure) -> [UInt8] {
    try bytes(options[.prefix] ?? [], named: "--prefix")
  }

  /// The bytes of a key, which are the text itself unless `--key-format` is given.
  private func bytes(_ text: [UInt8], named name: String) throws(CommandFailure) -> [UInt8] {
    guard let format: KeyFormat = try value(of: .keyFormat) else { return text }
    guard let bytes = format.key(from: text) else {
      throw usage("\(name) must be \(format.kind), not \(DisplayText.line(text))")
    }
    return bytes
  }

  /// The option that an argument with leading dashes names, and the value after the equals sign.
  private static func option(_ argument: [UInt8]) -> (Option, [UInt8]?)? {
    if argument == Array("-h".utf8) { return (.help, nil) }
    if argument == Array("-V".utf8) { return (.version, nil) }
    guard argument.starts(with: "--".utf8) else { return nil }
    let body = argument.dropFirst(2)
    let name = body.prefix { $0 != UInt8(ascii: "=") }
    let word = String(decoding: name, as: UTF8.self)
    guard let option = Option(rawValue: word) ?? Option.synonyms[word] else { return nil }
    return (option, name.count < body.count ? Array(body.dropFirst(name.count + 1)) : nil)
  }
}
