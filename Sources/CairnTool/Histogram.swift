import Cairn
import CommandText

/// Counts numbers by ranges with fixed ends.
struct Histogram {
  /// Each range ends below its number and begins where the previous range ends. One more range, the
  /// last, has no end.
  let ends: [(below: Int, label: String)]
  /// The label of the last range.
  let lastLabel: String
  private(set) var counts: [Int]

  private init(_ ends: [(below: Int, label: String)], last: String) {
    self.ends = ends
    lastLabel = last
    counts = [Int](repeating: 0, count: ends.count + 1)
  }

  /// Sizes of values, from 64 bytes to 256 MiB.
  static var sizes: Histogram {
    let ends = (3...14).map { 1 << (2 * $0) }
    return Histogram(
      ends.map { ($0, "below \(DisplayText.wholeSize($0))") },
      last: "\(DisplayText.wholeSize(ends[ends.count - 1])) and more")
  }

  /// Ages in seconds, from a minute to a year.
  static var ages: Histogram {
    let ends = [
      (60, "a minute"), (3600, "an hour"), (86_400, "a day"), (604_800, "a week"),
      (2_592_000, "30 days"), (31_536_000, "a year"),
    ]
    return Histogram(ends.map { ($0.0, "below \($0.1)") }, last: "a year and more")
  }

  mutating func add(_ number: Int) {
    counts[ends.firstIndex { number < $0.below } ?? ends.count] += 1
  }

  var json: JSON {
    .array(
      counts.enumerated().map { index, count in
        let below = index < ends.count ? JSON.integer(ends[index].below) : .null
        return .object([("below", below), ("keys", .integer(count))])
      })
  }

  /// A row for each range from the first to the last nonempty one, with a bar that fits the width.
  func lines(title: String, width: Int, painter: Painter) -> [String] {
    let labels = ends.map(\.label) + [lastLabel]
    guard let first = counts.firstIndex(where: { $0 > 0 }),
      let last = counts.lastIndex(where: { $0 > 0 })
    else { return [] }
    let figures = counts.map { DisplayText.count($0) }
    let percents = DisplayText.percents(counts)
    let labelWidth = max(title.count, labels[first...last].map(\.count).max() ?? 0)
    let figureWidth = max("keys".count, figures.map(\.count).max() ?? 0)
    let longest = max(1, counts.max() ?? 1)
    // Two columns separate the parts; a percentage takes at most five.
    let barWidth = max(0, min(50, width - labelWidth - figureWidth - 5 - 6))
    func left(_ text: String, _ width: Int) -> String {
      text + String(repeating: " ", count: max(0, width - text.count))
    }
    func right(_ text: String, _ width: Int) -> String {
      String(repeating: " ", count: max(0, width - text.count)) + text
    }
    let head = left(title, labelWidth) + "  " + right("keys", figureWidth)
    return [painter(head, .heading)]
      + (first...last).map { index in
        let length = (Double(counts[index]) / Double(longest) * Double(barWidth)).rounded()
        let cells = counts[index] > 0 ? max(min(1, barWidth), Int(length)) : 0
        let row =
          left(labels[index], labelWidth) + "  " + right(figures[index], figureWidth) + "  "
          + right(percents[index], 5)
        return cells == 0
          ? row : row + "  " + painter(String(repeating: "#", count: cells), .bar)
      }
  }
}

extension DisplayText {
  /// A power of 1024, or a small multiple of one: `64 B`, `4 KiB`.
  fileprivate static func wholeSize(_ byteCount: Int) -> String {
    size(byteCount).replacing(".0 ", with: " ")
  }
}

/// How large the values of a store are, and how long ago they were written.
struct EntryHistograms {
  private(set) var sizes = Histogram.sizes
  private(set) var ages = Histogram.ages

  /// Reads the head of every record, one entry at a time.
  ///
  /// - Parameter report: called for every damaged record.
  init(of store: Store, reporting report: (StoreError) -> Void) throws {
    let now = Timestamp.now.millisecondsSinceEpoch
    do {
      try store.forEachKey { key in
        do throws(StoreError) {
          if let info = try store.info(forKey: key) {
            sizes.add(info.valueByteCount)
            ages.add(Int(clamping: (now - info.written.millisecondsSinceEpoch) / 1000))
          }
        } catch {
          guard case .corrupt = error else { throw error }
          report(error)
        }
        return SystemCalls.interruption == 0 ? .next : .stop
      }
    } catch let error as StoreError {
      guard case .corrupt = error else { throw error }
      report(error)
    }
  }
}
