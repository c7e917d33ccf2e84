/// A command line, taken apart.
///
/// Options may stand anywhere before `--`, as `--name value` or `--name=value`; a lone `-` is an
/// operand. Operands and values of options are bytes, since keys need not be text. Of an option
/// that is given twice, the last value holds.
struct Invocation {
  /// The first operand of the line.
  var command: Command?
  /// What follows it.
  var operands: [[UInt8]] = []
  /// The options with their values; empty for those that take none.
  var options: [Option: [UInt8]] = [:]
  /// What is wrong with an option. What help there is depends on the command, which may come
  /// later in the line.
  private var problem: String?

  init(_ arguments: [[UInt8]]) throws(CommandFailure) {
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
        problem = problem ?? "unknown option \(DisplayText.line(argument))"
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
      guard let command = Command(rawValue: String(decoding: word, as: UTF8.self)) else {
        throw .usage("unknown command \(DisplayText.line(word)); see cairn help")
      }
      self.command = command
      operands = Array(words.dropFirst())
    }
  }

  /// Checks that there is a command, and options and operands such as it takes.
  func check() throws(CommandFailure) {
    if let problem { throw usage(problem) }
    guard let command else { throw usage("a command is missing") }
    for option in options.keys where option != .help && !command.options.contains(option) {
      throw usage("unknown option --\(option.rawValue)")
    }
    if operands.count < command.operandCounts.lowerBound {
      throw usage("\(command.operandNames[operands.count]) is missing")
    }
    if operands.count > command.operandCounts.upperBound {
      let extra = operands[command.operandCounts.upperBound]
      throw usage("unexpected argument \(DisplayText.line(extra))")
    }
  }

  func has(_ option: Option) -> Bool { options[option] != nil }

  /// A usage error that says where to read on.
  func usage(_ message: String) -> CommandFailure {
    .usage("\(message); see cairn help\(command.map { " \($0.rawValue)" } ?? "")")
  }

  /// The operand as a key, which has at least one byte.
  func key(at index: Int) throws(CommandFailure) -> [UInt8] {
    if operands[index].isEmpty { throw usage("KEY must not be empty") }
    return operands[index]
  }

  /// The option that an argument begins with dashes for, and the value after its equals sign.
  private static func option(_ argument: [UInt8]) -> (Option, [UInt8]?)? {
    if argument == Array("-h".utf8) { return (.help, nil) }
    guard argument.starts(with: "--".utf8) else { return nil }
    let body = argument.dropFirst(2)
    let name = body.prefix { $0 != UInt8(ascii: "=") }
    guard let option = Option(rawValue: String(decoding: name, as: UTF8.self)) else { return nil }
    return (option, name.count < body.count ? Array(body.dropFirst(name.count + 1)) : nil)
  }
}
