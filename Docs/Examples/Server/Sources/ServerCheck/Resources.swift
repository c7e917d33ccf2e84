import Foundation

/// The server's resources at one moment.
struct Resources: Sendable {
  /// Resident memory, with and without mapped files.
  var residentBytes: Int
  var ownBytes: Int
  var descriptorCount: Int
  var threadCount: Int
  var persistDiskBytes: Int
  var pagesDiskBytes: Int

  /// - Returns: `nil` if there is no such process.
  init?(process: Int32, directory: URL) {
    guard
      let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8),
      let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd")
    else { return nil }
    func field(_ name: String) -> Int? {
      status.split(separator: "\n").first { $0.hasPrefix(name + ":") }
        .flatMap { $0.split(whereSeparator: \.isWhitespace).dropFirst().first }.flatMap { Int($0) }
    }
    guard let resident = field("VmRSS"), let own = field("RssAnon"), let threads = field("Threads")
    else { return nil }
    residentBytes = resident * 1024
    ownBytes = own * 1024
    descriptorCount = descriptors.count
    threadCount = threads
    persistDiskBytes = Self.diskBytes(of: directory.appending(path: "persist"))
    pagesDiskBytes = Self.diskBytes(of: directory.appending(path: "pages"))
  }

  /// The disk space of a directory's files.
  private static func diskBytes(of directory: URL) -> Int {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []
    return names.reduce(0) { sum, name in
      var status = stat()
      return stat(directory.appending(path: name).path, &status) == 0
        ? sum + Int(status.st_blocks) * 512 : sum
    }
  }
}

extension [Resources] {
  /// The largest value of a measure.
  func largest(_ measure: KeyPath<Resources, Int>) -> Int {
    map { $0[keyPath: measure] }.max() ?? 0
  }

  /// The median of a measure in the samples from `start` to `end`, as fractions of the count.
  func median(_ measure: KeyPath<Resources, Int>, from start: Double, to end: Double) -> Int {
    let part = self[Int(Double(count) * start)..<Int(Double(count) * end)]
    let values = part.map { $0[keyPath: measure] }.sorted()
    return values.isEmpty ? 0 : values[values.count / 2]
  }
}
