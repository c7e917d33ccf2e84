/// How far a long command is, shown on a terminal at most ten times a second.
final class Progress {
  private let console: Console
  private let verb: String
  private let clock = ContinuousClock()
  private let start: ContinuousClock.Instant
  private var nextUpdate: ContinuousClock.Instant

  private(set) var fileCount = 0
  private(set) var byteCount = 0

  init(_ verb: String, on console: Console) {
    self.console = console
    self.verb = verb
    start = clock.now
    nextUpdate = start + .milliseconds(100)
  }

  /// Counts one more file.
  func advance(byteCount: Int) {
    fileCount += 1
    self.byteCount += byteCount
    guard console.errorsAreTerminal else { return }
    let now = clock.now
    guard now >= nextUpdate else { return }
    nextUpdate = now + .milliseconds(100)
    let rate = Double(self.byteCount) / ((now - start) / .seconds(1))
    console.showProgress(
      "\(verb) \(DisplayText.count(fileCount, "file")), \(DisplayText.size(self.byteCount)), "
        + "\(DisplayText.size(Int(rate)))/s")
  }

  /// Takes the line away.
  func end() { console.clearProgress() }
}
