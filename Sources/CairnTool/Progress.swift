import CairnStore
import CommandText

/// How far a long command is, with its rate and the time that is left: shown on a terminal, at most ten
/// times a second.
final class Progress {
  private let console: Console
  private let clock = ContinuousClock()
  private var verb = ""
  private var start: ContinuousClock.Instant
  /// When something was told last: the part that follows has begun by then.
  private var last: ContinuousClock.Instant
  private var nextUpdate: ContinuousClock.Instant

  init(on console: Console) {
    self.console = console
    start = clock.now
    last = start
    nextUpdate = start
  }

  /// Shows how far the work is. Another verb begins another part of it, with a rate of its own.
  ///
  /// - Parameters:
  ///   - amount: what is done, in words.
  ///   - byteCount: the bytes that the rate is of.
  ///   - share: how much of all is done, from 0 to 1; `nil` where that is not known.
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
    // The first moments tell little.
    if let share, share > 0.01, elapsed > .milliseconds(500) {
      line += ", \(DisplayText.duration(elapsed * (max(0, 1 - share) / share))) left"
    }
    console.showProgress(line)
  }

  /// Shows how many bytes of all are done.
  ///
  /// - Parameter total: all bytes, or `nil` where that is not known.
  func show(_ verb: String, byteCount: Int, of total: Int?) {
    let whole = total.map { " of \(DisplayText.size($0))" } ?? ""
    show(
      verb, "\(DisplayText.size(byteCount))\(whole)", byteCount: byteCount,
      share: total.flatMap { $0 > 0 ? Double(byteCount) / Double($0) : nil })
  }
}
