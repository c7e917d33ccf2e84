import Foundation
import Synchronization

/// An event that a reader or writer has seen. All times are from `bootTime`, which all processes of
/// a machine share.
package struct Event: Sendable {
  package enum Kind: String, Sendable {
    /// A write began.
    case begun = "B"
    /// A write was acknowledged.
    case acknowledged = "W"
    case read = "R"
  }

  package var kind: Kind
  /// The number of the process. A restarted process gets another number.
  package var process: Int
  package var key: Int
  /// The number that was written or read, or 0 if there was no value. Numbers written to a key
  /// increase.
  package var number: Int64
  package var start: Int64
  package var end: Int64
  /// For a read: whether the answer was marked as stale.
  package var isStale = false
  /// For a read: the start of the last `catchUp` that returned before the read.
  package var fence: Int64 = 0

  package init(
    kind: Kind, process: Int, key: Int, number: Int64, start: Int64, end: Int64,
    isStale: Bool = false, fence: Int64 = 0
  ) {
    (self.kind, self.process, self.key, self.number) = (kind, process, key, number)
    (self.start, self.end, self.isStale, self.fence) = (start, end, isStale, fence)
  }

  var line: String {
    "\(kind.rawValue) \(process) \(key) \(number) \(start) \(end) \(isStale ? 1 : 0) \(fence)\n"
  }

  /// - Returns: `nil` if a kill cut the line off.
  init?(line: some StringProtocol) {
    let parts = line.split(separator: " ")
    guard parts.count == 8, let kind = Kind(rawValue: String(parts[0])) else { return nil }
    let numbers = parts.dropFirst().compactMap { Int64($0) }
    guard numbers.count == 7 else { return nil }
    self.init(
      kind: kind, process: Int(numbers[0]), key: Int(numbers[1]), number: numbers[2],
      start: numbers[3], end: numbers[4], isStale: numbers[5] == 1, fence: numbers[6])
  }

  /// The events of a file. The last line may be cut off.
  package static func events(in url: URL) throws -> [Event] {
    try String(contentsOf: url, encoding: .utf8).split(separator: "\n").compactMap {
      Event(line: $0)
    }
  }
}

/// Collects events in memory, or writes each to a file at once, so that a kill loses none.
package final class EventLog: Sendable {
  private let events = Mutex<[Event]>([])
  private let file: FileHandle?

  package init(file: FileHandle? = nil) { self.file = file }

  package var all: [Event] { events.withLock { $0 } }

  func add(_ event: Event) {
    if let file {
      try? file.write(contentsOf: Data(event.line.utf8))
    } else {
      events.withLock { $0.append(event) }
    }
  }
}
