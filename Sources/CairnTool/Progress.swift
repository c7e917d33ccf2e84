import CairnStore
import CommandText

/// Shows the progress of a long command on a terminal, with its rate and the time left, at most ten
/// times a second.
package final class Progress {
  private let console: Console
  private let clock = ContinuousClock()
  private var verb = ""
  private var start: ContinuousClock.Instant
  /// When `show` was last called. A new part of the work counts from then.
  private var last: ContinuousClock.Instant
  private var nextUpdate: ContinuousClock.Instant

  init(on console: Console) {
    self.console = console
    start = clock.now
    last = start
    nextUpdate = start
  }

  /// Shows how many bytes are done. A new verb begins another part of the work, with its own rate.
  ///
  /// - Parameter total: the total number of bytes, or `nil` if it is unknown.
  func show(_ verb: String, byteCount: Int, of total: Int?) {
    guard console.showsProgress else { return }
    let now = clock.now
    defer { last = now }
    if verb != self.verb {
      self.verb = verb
      start = last
      nextUpdate = start + .milliseconds(100)
    }
    guard now >= nextUpdate else { return }
    nextUpdate = now + .milliseconds(100)
    console.showProgress(
      Self.line(verb, byteCount: byteCount, of: total, after: start.duration(to: now)))
  }

  /// The line for this many bytes after this much time.
  package static func line(
    _ verb: String, byteCount: Int, of total: Int?, after elapsed: Duration
  ) -> String {
    let whole = total.map { " of \(DisplayText.size($0))" } ?? ""
    var line = "\(verb) \(DisplayText.size(byteCount))\(whole), "
    let share = total.flatMap { $0 > 0 ? min(1, Double(byteCount) / Double($0)) : nil }
    if let share { line += "\(Int(share * 100)) %, " }
    let seconds = elapsed / .seconds(1)
    line += DisplayText.size(seconds > 0 ? Int(Double(byteCount) / seconds) : 0) + "/s"
    // In the first moments, the rate is unreliable.
    if let share, share > 0.01, elapsed > .milliseconds(500) {
      line += ", \(DisplayText.duration(elapsed * ((1 - share) / share))) left"
    }
    return line
  }
}
