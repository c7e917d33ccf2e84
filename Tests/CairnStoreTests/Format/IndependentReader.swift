import CairnStore
import Foundation
import FuzzSupport
import Testing

/// Runs Tests/FormatReader/read_store.py.
enum IndependentReader {
  struct Line: Codable, Hashable {
    var key: String
    var value: String?
    var metadata: String
    var sequence: UInt64
    var written: Int64
    var expiry: Int64?
    var idleLimit: UInt64?
    var cost: UInt64?
  }

  static let clock = FixedClock(time: Timestamp(millisecondsSinceEpoch: 4_000_000_000_123))

  private static let repository = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  static let isAvailable = interpreter != nil

  /// The program itself: the first one in the path may be a script that searches for it each time.
  private static let interpreter: String? = {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", "-c", "import sys; print(sys.executable)"]
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    do { try process.run() } catch { return nil }
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { return nil }
    return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .newlines)
  }()

  static func read(
    _ path: String, now: Timestamp = clock.time
  ) throws -> (status: Int32, lines: [Line], errors: String) {
    let process = Process()
    let output = Pipe()
    // A file is used because two pipes read one after another could block.
    let errors = path + ".errors"
    try Data().write(to: URL(fileURLWithPath: errors))
    process.executableURL = URL(fileURLWithPath: try #require(interpreter))
    process.arguments = [
      "-B", "-S", repository.appendingPathComponent("Tests/FormatReader/read_store.py").path,
      "--now", "\(now.millisecondsSinceEpoch)", path,
    ]
    process.standardOutput = output
    process.standardError = FileHandle(forWritingAtPath: errors)
    try process.run()
    // A program that hangs is ended by a signal, which is a distinct status.
    let watchdog = DispatchWorkItem { process.terminate() }
    DispatchQueue.global().asyncAfter(deadline: .now() + 100, execute: watchdog)
    defer { watchdog.cancel() }
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let lines = try data.split(separator: UInt8(ascii: "\n")).map {
      try JSONDecoder().decode(Line.self, from: $0)
    }
    return (process.terminationStatus, lines, try String(contentsOfFile: errors, encoding: .utf8))
  }

  /// What the store itself finds.
  static func content(of store: Store) throws -> Set<Line> {
    var lines: Set<Line> = []
    try store.forEachEntry { entry in
      lines.insert(
        Line(
          key: hexadecimal(entry.key), value: hexadecimal(entry.value),
          metadata: hexadecimal(entry.metadata), sequence: entry.info.version,
          written: entry.info.written.millisecondsSinceEpoch,
          expiry: entry.info.expires?.millisecondsSinceEpoch,
          idleLimit: entry.info.idleLimit.map { UInt64($0.milliseconds) },
          cost: entry.info.givenCost.map { UInt64($0) }))
      return .next
    }
    return lines
  }

  private static func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(2 * bytes.count)
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// The concatenated pages of the format that have worked examples.
  static var document: String {
    get throws {
      try ["FileFormat.md", "FileFormat/Recovery.md", "FileFormat/Checkpoint.md"].map { page in
        try String(
          contentsOf: repository.appendingPathComponent("Docs/\(page)"), encoding: .utf8)
      }.joined(separator: "\n")
    }
  }

  /// The files of a worked example: the first dump below the heading with each name. Every line of
  /// a dump has its offset. In a checkpoint, shards without entries are left out.
  static func filesInDocument(section: Int) throws -> [(name: String, bytes: [UInt8])] {
    var files: [(name: String, bytes: [UInt8])] = []
    var isInSection = false
    var isInDump = false
    var isDone = true
    for line in try document.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("## ") { isInSection = line.hasPrefix("## \(section). ") }
      guard isInSection else { continue }
      if line.hasPrefix("### ") {
        let name = String(line.dropFirst(4))
        isDone = name != "MANIFEST" && !name.hasPrefix("seg-") && !name.hasPrefix("ckpt-")
        if !isDone { files.append((name, [])) }
      } else if line.hasPrefix("```") {
        if isInDump { isDone = true }
        isInDump.toggle()
      } else if isInDump, !isDone, !line.isEmpty {
        var words = line.prefix { $0 != "|" }.split(separator: " ")[...]
        let last = files.count - 1
        let offset = try #require(words.popFirst().flatMap { Int($0) })
        if files[last].name.hasPrefix("ckpt-") {
          addEmptyShards(to: &files[last].bytes, to: offset)
        }
        #expect(offset == files[last].bytes.count)
        files[last].bytes += try words.map { try #require(UInt8($0, radix: 16)) }
      }
    }
    return files
  }

  private static func addEmptyShards(to bytes: inout [UInt8], to offset: Int) {
    while bytes.count + 20 <= offset {
      let last = Array(bytes.suffix(20))
      let place = last.rawSpan.load(UInt64.self, at: 0)
      let entries = last.rawSpan.load(UInt32.self, at: 8)
      var next = [UInt8](repeating: 0, count: 20)
      next.withMutableSpan { $0.store(place + UInt64(entries) * 16, at: 0) }
      bytes += next
    }
  }
}

struct FixedClock: WallClock {
  let time: Timestamp
  func now() -> Timestamp { time }
}
