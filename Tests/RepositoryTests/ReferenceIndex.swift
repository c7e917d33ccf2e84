import Foundation

/// What the compiler recorded in a debug build: which file uses which declaration of another file.
enum ReferenceIndex {
  struct Reference {
    /// Both are paths below the repository.
    var user: String
    var line: Int
    var owner: String
    var name: String
  }

  /// The index is beside the program that runs the tests.
  private static let store: String? = {
    let running = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    for start in [running ?? "", CommandLine.arguments[0]] {
      let path = URL(filePath: start).deletingLastPathComponent().path + "/index/store"
      if FileManager.default.fileExists(atPath: path) { return path }
    }
    return nil
  }()

  static var isThere: Bool { store != nil && (try? run(["-c", ""])) != nil }

  static func references(in module: String) throws -> [Reference] {
    let script = Source.root.appending(path: "Tests/LayerReader/references.py").path
    let root = Source.root.path + "/"
    return try run(["-B", script, store ?? "", module]).split(separator: "\n").compactMap { line in
      let fields = line.split(separator: "\t").map(String.init)
      guard fields.count == 4, fields[0].hasPrefix(root), fields[2].hasPrefix(root),
        let line = Int(fields[1])
      else { return nil }
      return Reference(
        user: String(fields[0].dropFirst(root.count)), line: line,
        owner: String(fields[2].dropFirst(root.count)), name: fields[3])
    }
  }

  private struct Failure: Error { var status: Int32 }

  private static func run(_ arguments: [String]) throws -> String {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["python3"] + arguments
    process.standardOutput = output
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw Failure(status: process.terminationStatus) }
    return String(decoding: data, as: UTF8.self)
  }
}
