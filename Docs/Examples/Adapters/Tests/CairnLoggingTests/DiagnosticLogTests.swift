import Cairn
import CairnLogging
import Foundation
import Logging
import Synchronization
import Testing

@Suite("The bridge to swift-log")
final class DiagnosticLogTests {
  private let path = NSTemporaryDirectory() + "/log-\(UUID().uuidString)"

  deinit { try? FileManager.default.removeItem(atPath: path) }

  private func open(_ handler: RecordingHandler) async throws -> DiskCache<String, Data> {
    var configuration = DiskCacheConfiguration()
    configuration.store.log = DiagnosticLog(
      Logger(label: "cairn") { _ in handler }, metadata: ["cache": "pages"])
    return try await .open(.path(path), configuration: configuration)
  }

  @Test("A message keeps its level, and has its category and path as metadata")
  func message() async throws {
    let handler = RecordingHandler()
    let cache = try await open(handler)
    cache[""] = Data()
    #expect(
      handler.lines == [
        "error pages writing \(path): writing by subscript: not a valid key: it has 0 bytes; "
          + "it must have 1 to 65535"
      ])
    try await cache.close()
  }

  @Test("Damage to a file is logged as an error of the category damage")
  func damage() async throws {
    let cache = try await open(RecordingHandler())
    try await cache.setValue(Data(repeating: 7, count: 10_000), forKey: "key", durability: .durable)
    try await cache.close()
    let names = try FileManager.default.contentsOfDirectory(atPath: path)
    for name in names where name.hasPrefix("seg-") {
      try damage(path + "/" + name)
    }
    let handler = RecordingHandler()
    let damaged = try await open(handler)
    // Either the open or this read finds the damage.
    _ = try? await damaged.value(forKey: "key", lifetime: .seconds(60)) { Data() }
    try await damaged.close()
    #expect(handler.lines.contains { $0.contains(" pages damage ") }, "\(names) \(handler.lines)")
  }

  /// Changes the bytes of the value.
  private func damage(_ path: String) throws {
    var bytes = try Data(contentsOf: URL(filePath: path))
    guard let range = bytes.range(of: Data(repeating: 7, count: 64)) else { return }
    bytes[range.lowerBound] = 8
    try bytes.write(to: URL(filePath: path))
  }
}

/// Records the logged messages.
private final class RecordingHandler: LogHandler {
  private let held = Mutex<[String]>([])
  var lines: [String] { held.withLock { $0 } }

  var logLevel: Logger.Level {
    get { .trace }
    set {}
  }
  var metadata: Logger.Metadata {
    get { [:] }
    set {}
  }
  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { nil }
    set {}
  }

  func log(event: LogEvent) {
    let words = ["cache", "category", "path"].map { "\(event.metadata?[$0] ?? "-")" }
    held.withLock {
      $0.append("\(event.level) \(words.joined(separator: " ")): \(event.message)")
    }
  }
}
