import Cairn
import CairnPersist
import Foundation
import Logging
import Synchronization
import Testing

@Suite("The log of a cache")
final class DiagnosticLogTests {
  private let path = NSTemporaryDirectory() + "/log-\(UUID().uuidString)"

  deinit { try? FileManager.default.removeItem(atPath: path) }

  @Test("goes to swift-log, with level, category and path")
  func bridge() async throws {
    let handler = RecordingHandler()
    let driver = try await CairnPersistDriver.open(
      path: path, log: DiagnosticLog(Logger(label: "cairn") { _ in handler }))
    driver.cache[""] = Data()
    #expect(
      handler.lines == [
        "error writing \(path): writing by subscript: a key has 0 bytes; it must have from 1 to 65535"
      ])
    try await driver.cache.close()
  }
}

/// Keeps what is logged.
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
    let words = ["category", "path"].map { "\(event.metadata?[$0] ?? "-")" }
    held.withLock {
      $0.append("\(event.level) \(words.joined(separator: " ")): \(event.message)")
    }
  }
}
