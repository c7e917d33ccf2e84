import CairnStore
import CommandText

/// The progress of a long command, with its rate and the time left: shown on a terminal, at most
/// ten times a second.
final class Progress {
  private let console: Console
  private let clock = ContinuousClock()
  private var verb = ""
  private var start: ContinuousClock.Instant
  /// When progress was last shown: by then, the next part has begun.
  private var last: ContinuousClock.Instant
  private var nextUpdate: ContinuousClock.Instant

  init(on console: Console) {
    self.console = console
    start = clock.now
    last = start
    nextUpdate = start
  }

  /// Shows the progress of the work. A new verb begins another part of it, with a separate rate.
  ///
  /// - Parameters:
  ///   - amount: the work done, in words.
  ///   - byteCount: the bytes for the rate.
  ///   - share: the share of the work done, from 0 to 1; `nil` if it is unknown.
  func show(
    _ verb: String, _ amount: @autoclosure () -> String, byteCount: Int, share: Double? = nil
  ) {
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
    let elapsed = start.duration(to: now)
    var line = "\(verb) \(amount()), "
    if let share { line += "\(Int(min(share, 1) * 100)) %, " }
    line += DisplayText.size(Int(Double(byteCount) / (elapsed / .seconds(1)))) + "/s"
    // The first moments say little about the rate.
    if let share, share > 0.01, elapsed > .milliseconds(500) {
      line += ", \(DisplayText.duration(elapsed * (max(0, 1 - share) / share))) left"
    }
    console.showProgress(line)
  }

  /// Shows how many of the bytes are done.
  ///
  /// - Parameter total: all bytes, or `nil` if the number is unknown.
  func show(_ verb: String, byteCount: Int, of total: Int?) {
    let whole = total.map { " of \(DisplayText.size($0))" } ?? ""
    show(
      verb, "\(DisplayText.size(byteCount))\(whole)", byteCount: byteCount,
      share: total.flatMap { $0 > 0 ? Double(byteCount) / Double($0) : nil })
  }
}
