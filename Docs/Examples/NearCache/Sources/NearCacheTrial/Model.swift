/// Checks what reads may return, given all writes.
///
/// Writes of a key have increasing numbers, and a key has one writer at a time. An unacknowledged
/// write may take effect at any time, so its number may always be read.
package struct Model {
  /// The result of a check.
  package struct Report: Sendable, CustomStringConvertible {
    package var readCount = 0
    package var staleReadCount = 0
    package var writeCount = 0
    package var unacknowledgedCount = 0
    package var violations: [String] = []
    /// The longest time from the acknowledgement of a write to the start of a read that did not
    /// reflect it.
    package var greatestStaleness: Duration = .zero
    /// The same for reads that were marked as stale.
    package var greatestStaleStaleness: Duration = .zero

    package var description: String {
      """
      \(readCount) changes in reads, \(staleReadCount) stale, \(writeCount) writes, \
      \(unacknowledgedCount) unacknowledged; reads at most \(greatestStaleness) old, \
      stale reads at most \(greatestStaleStaleness); \(violations.count) violations
      \(violations.prefix(10).joined(separator: "\n"))
      """
    }
  }

  /// The acknowledged writes of a key, in the order of their acknowledgements.
  private struct History {
    var ends: [Int64] = []
    /// The highest number up to each of them.
    var highest: [Int64] = []

    mutating func add(_ event: Event) {
      ends.append(event.end)
      highest.append(max(event.number, highest.last ?? 0))
    }

    /// The highest number acknowledged before a time.
    func highest(before time: Int64) -> Int64 {
      let index = ends.partition { $0 >= time }
      return index == 0 ? 0 : highest[index - 1]
    }

    /// When the first higher number was acknowledged.
    func end(above number: Int64) -> Int64? {
      let index = highest.partition { $0 > number }
      return index < ends.count ? ends[index] : nil
    }
  }

  private struct Place: Hashable {
    var process: Int
    var key: Int
  }

  private struct Write: Hashable {
    var key: Int
    var number: Int64
  }

  /// Checks all reads.
  ///
  /// - Parameters:
  ///   - stalenessLimit: how long after its acknowledgement a write may be missing from reads.
  ///   - staleLimit: the same for reads that were marked as stale.
  package static func check(
    _ events: [Event], stalenessLimit: Duration, staleLimit: Duration
  ) -> Report {
    var report = Report()
    var histories: [Int: History] = [:]
    var own: [Place: History] = [:]
    var begun: [Write: Int64] = [:]
    var acknowledged: Set<Write> = []
    for event in events where event.kind == .begun {
      begun[Write(key: event.key, number: event.number)] = event.start
    }
    for event in events.filter({ $0.kind == .acknowledged }).sorted(by: { $0.end < $1.end }) {
      histories[event.key, default: History()].add(event)
      own[Place(process: event.process, key: event.key), default: History()].add(event)
      acknowledged.insert(Write(key: event.key, number: event.number))
    }
    report.writeCount = begun.count
    report.unacknowledgedCount = begun.count - acknowledged.count
    for event in events where event.kind == .read {
      report.readCount += 1
      if event.isStale { report.staleReadCount += 1 }
      let write = Write(key: event.key, number: event.number)
      if event.number != 0 {
        guard let start = begun[write], start <= event.end else {
          report.violations.append("read before the write: \(event)")
          continue
        }
        if !acknowledged.contains(write) { continue }
      }
      let history = histories[event.key] ?? History()
      if let end = history.end(above: event.number), end < event.start {
        let staleness = Duration.nanoseconds(event.start - end)
        if event.isStale {
          report.greatestStaleStaleness = max(report.greatestStaleStaleness, staleness)
        } else {
          report.greatestStaleness = max(report.greatestStaleness, staleness)
        }
      }
      let limit = event.isStale ? staleLimit : stalenessLimit
      let mine = own[Place(process: event.process, key: event.key)] ?? History()
      for (required, rule) in [
        (history.highest(before: event.start - limit.nanoseconds), "older than promised"),
        (history.highest(before: event.fence), "older than an earlier catchUp"),
        (mine.highest(before: event.start), "older than the machine's own write"),
      ] where event.number < required {
        report.violations.append("\(rule): \(required) was acknowledged, read was \(event)")
      }
    }
    return report
  }
}

extension Array {
  /// The index of the first element that satisfies a condition. All later elements must satisfy it
  /// too.
  fileprivate func partition(_ holds: (Element) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if holds(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
