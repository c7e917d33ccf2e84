import CairnStore
import CommandText

/// The `cairn` command: parses the command line, runs the command, and returns its status to the
/// shell.
@main
enum Main {
  static func main() {
    let console = Console()
    let status = run(SystemCalls.arguments(), on: console)
    if SystemCalls.interruption != 0 { SystemCalls.endInterrupted() }
    SystemCalls.exit(status.rawValue)
  }

  /// Runs one command line. Reports every error as one line on standard error.
  private static func run(_ arguments: [[UInt8]], on console: Console) -> ExitStatus {
    do {
      try perform(arguments, on: console)
      console.clearProgress()
      try console.finish()
    } catch {
      let failure = CommandFailure(error)
      // Output written before the error is still worth reading.
      if failure.status != .outputClosed { try? console.finish() }
      console.report(failure)
    }
    return console.reported
  }

  private static func perform(_ arguments: [[UInt8]], on console: Console) throws {
    if arguments.isEmpty {
      console.show(Help.overview)
      throw CommandFailure.usage("a command is missing")
    }
    let invocation = Invocation(arguments)
    console.command = invocation.command
    console.setColor(try invocation.color())
    try invocation.checkCommand()
    guard let command = invocation.command else {
      if invocation.has(.version) { return try console.print("cairn \(LibraryVersion.text)") }
      if invocation.has(.help) { return try console.print(Help.overview) }
      return try invocation.check()
    }
    if invocation.has(.help) { return try console.print(Help.page(for: command)) }
    try invocation.check()
    switch command {
    case .put: try ValueCommands.put(invocation, on: console)
    case .get: try ValueCommands.get(invocation, on: console)
    case .info: try InfoCommand.run(invocation, on: console)
    case .increment: try IncrementCommand.run(invocation, on: console)
    case .delete: try ValueCommands.delete(invocation, on: console)
    case .expire: try ExpireCommand.run(invocation, on: console)
    case .keys: try KeysCommand.run(invocation, on: console)
    case .dump: try DumpCommand.run(invocation, on: console)
    case .load: try LoadCommand.run(invocation, on: console)
    case .stats: try StatsCommand.run(invocation, on: console)
    case .top: try TopCommand.run(invocation, on: console)
    case .verify: try VerifyCommand.run(invocation, on: console)
    case .salvage: try SalvageCommand.run(invocation, on: console)
    case .trim: try TrimCommand.run(invocation, on: console)
    case .compact: try CompactCommand.run(invocation, on: console)
    case .backup: try BackupCommand.run(invocation, on: console)
    case .import: try ImportCommand.run(invocation, on: console)
    case .export: try ExportCommand.run(invocation, on: console)
    case .completions: try Completions.run(invocation, on: console)
    case .version: try Version.run(invocation, on: console)
    case .help: try help(invocation, on: console)
    }
  }

  private static func help(_ invocation: Invocation, on console: Console) throws {
    if invocation.has(.man) { return try console.write(Array(ManualPage.text.utf8).rawSpan) }
    guard let name = invocation.operands.first else { return try console.print(Help.overview) }
    guard let command = Command(rawValue: String(decoding: name, as: UTF8.self)) else {
      throw Invocation.failure(forUnknownCommand: name)
    }
    try console.print(Help.page(for: command))
  }
}
