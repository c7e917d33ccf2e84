import CairnStore
import CommandText

/// Reads the lines of standard input, and keeps one of them in memory.
struct LineReader {
  /// The number of the line that `next` has returned, from 1.
  private(set) var lineNumber = 0
  /// The bytes that have been read.
  private(set) var byteCount = 0

  private let byteLimit: Int
  private var buffer: [UInt8] = []
  /// Where the next line begins in the buffer.
  private var start = 0
  private var isAtEnd = false
  private static let chunkByteCount = 256 * 1024

  /// - Parameter byteLimit: the maximum length of a line.
  init(byteLimit: Int) { self.byteLimit = byteLimit }

  /// The next line without its end, or `nil` after the last. The last line may lack its end.
  mutating func next() throws(CommandFailure) -> [UInt8]? {
    var searched = start
    lineNumber += 1
    while true {
      if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
        defer { start = end + 1 }
        return Array(buffer[start..<end])
      }
      buffer.removeSubrange(..<start)
      start = 0
      searched = buffer.count
      if isAtEnd { break }
      guard searched <= byteLimit else {
        throw failure("more than \(DisplayText.count(byteLimit)) bytes, the limit")
      }
      do throws(SystemError) {
        let chunk = try SystemCalls.read(.standardInput, capacity: Self.chunkByteCount)
        isAtEnd = chunk.count < Self.chunkByteCount
        buffer += chunk
        byteCount += chunk.count
      } catch { throw failure(error.reason) }
    }
    defer { buffer = [] }
    return buffer.isEmpty ? nil : buffer
  }

  /// A failure in the current line.
  ///
  /// - Parameter column: the number of the byte in the line, from 1.
  func failure(_ reason: String, column: Int? = nil) -> CommandFailure {
    let column = column.map { ", column \($0)" } ?? ""
    return CommandFailure(.failure, "standard input, line \(lineNumber)\(column): \(reason)")
  }
}
