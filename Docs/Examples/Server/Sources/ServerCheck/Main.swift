import Foundation

/// Runs the server under load, kills and restarts it, and checks its answers. Started by `./run`.
///
///     ServerCheck SECONDS SERVER SCRIPT DIRECTORY
///
/// Exits with status 1 if a check fails.
@main
enum Main {
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 5, let seconds = Int(arguments[1]), seconds >= 60 else {
      print("usage: ServerCheck SECONDS SERVER SCRIPT DIRECTORY, with 60 seconds or more")
      exit(2)
    }
    let run = try CheckRun(
      seconds: seconds, server: arguments[2], script: arguments[3],
      directory: URL(filePath: arguments[4]))
    do { try await run.run() } catch {
      run.findings.add("\(error)")
      run.abandon()
    }
    exit(run.findings.count == 0 ? 0 : 1)
  }
}
