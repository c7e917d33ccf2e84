import Foundation
import FuzzSupport

/// A process of this program that performs one task and reports on it line by line.
final class Worker {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var text: [UInt8] = []

  init(_ mode: String, store: String, _ arguments: [String]) throws {
    process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = ["--worker", mode, store] + arguments
    process.standardInput = input
    process.standardOutput = output
    try process.run()
  }

  var identifier: Int32 { process.processIdentifier }

  /// The next line that the worker reports; empty at the end.
  func line() -> String {
    while true {
      if let end = text.firstIndex(of: UInt8(ascii: "\n")) {
        defer { text.removeSubrange(...end) }
        return String(decoding: text[..<end], as: UTF8.self)
      }
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { return String(decoding: text, as: UTF8.self) }
      text += more
    }
  }

  /// All the remaining lines.
  func lines() -> [String] {
    text += output.fileHandleForReading.readDataToEndOfFile()
    return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  /// Ends the worker's standard input.
  func letGo() { try? input.fileHandleForWriting.close() }

  func kill() { Foundation.kill(process.processIdentifier, SIGKILL) }

  /// - Returns: the worker's status, or the signal that ended it.
  func waitForEnd() -> Int32 {
    process.waitUntilExit()
    return process.terminationStatus
  }

  // MARK: In the process itself

  static func run(_ mode: String, store: String, _ arguments: [String]) -> Never {
    // The alarm ends this process if the parent process is gone.
    alarm(60)
    do {
      switch mode {
      case "lock": try LockRun.work(store: store)
      case "file-size": try FileSizeRun.work(store: store, seed: UInt64(arguments[0]) ?? 0)
      default: throw FuzzFailure("no mode \(mode)")
      }
      exit(0)
    } catch {
      say("\(error)")
      exit(1)
    }
  }

  /// Writes a line to standard output at once.
  static func say(_ line: String) {
    var line = line + "\n"
    line.withUTF8 { bytes in _ = unsafe write(1, bytes.baseAddress, bytes.count) }
  }
}
