import CairnLibC

/// The built command, and how tests run it.
enum Command {
  /// All options and commands, in the order of the help.
  static let names = [
    "put", "get", "info", "delete", "increment", "expire", "keys", "dump", "load", "stats", "top",
    "verify", "salvage", "trim", "compact", "backup", "import", "export", "completions", "version",
    "help",
  ]

  /// The command is next to the program that runs the tests, in whatever scratch path was built.
  static let path: String = {
    // SAFETY: the call writes at most the size of the buffer.
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = unsafe readlink("/proc/self/exe", &buffer, 4096)
    let bytes = buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }
    let running = String(decoding: bytes, as: UTF8.self)
    for start in [running, CommandLine.arguments[0]] {
      var directory = start
      while let slash = directory.lastIndex(of: "/"), slash != directory.startIndex {
        directory = String(directory[..<slash])
        if unsafe access(directory + "/cairn", X_OK) == 0 { return directory + "/cairn" }
      }
    }
    // This file is in Tests/CairnToolTests/Support.
    let package = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    return "/\(package)/.build/debug/cairn"
  }()
}

/// Runs `cairn` with arguments that are text.
@discardableResult
func cairn(_ arguments: String..., input: [UInt8] = []) throws -> ChildProcess.Outcome {
  try ChildProcess.run(Command.path, arguments.map { Array($0.utf8) }, input: input)
}

/// Runs `cairn` with arguments that may be any bytes.
@discardableResult
func cairn(bytes arguments: [[UInt8]], input: [UInt8] = []) throws -> ChildProcess.Outcome {
  try ChildProcess.run(Command.path, arguments, input: input)
}

/// The differences that `diff -r` finds between two trees; empty if they are equal.
func differences(_ left: String, _ right: String) throws -> String {
  let outcome = try ChildProcess.run(
    "/usr/bin/diff",
    ["-r", "--no-dereference", left, right].map { Array($0.utf8) })
  return outcome.status == 0 ? "" : outcome.text + outcome.errors + "status \(outcome.status)"
}
