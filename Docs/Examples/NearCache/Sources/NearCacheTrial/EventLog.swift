import Foundation
import Synchronization

/// What a reader or a writer has seen. All times are those of `bootTime`, which all processes of a machine share.
package struct Event: Sendable {
  package enum Kind: String, Sendable {
    /// A write that has begun.
    case begun = "B"
    /// A write that was acknowledged.
    case acknowledged = "W"
    case read = "R"
  }

  package var kind: Kind
  /// Who; a process that is started again is another one.
  package var process: Int
  package var key: Int
  /// What was written or read: writes of a key have rising numbers. 0: there was none.
  package var number: Int64
  package var start: Int64
  package var end: Int64
  /// Of a read: whether it was given as one that may be stale.
  package var isStale = false
  /// Of a read: when the last `catchUp` had begun that had returned before the read.
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

  /// - Returns: `nil` where a kill has cut it off.
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

/// Takes events: in memory, or written to a file one by one, so that a kill takes none.
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
