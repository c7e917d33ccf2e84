import Cairn
import CommandText

/// `top`: repeatedly shows a store's contents and write rate, even while another process has the
/// store open.
enum TopCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let limit = try invocation.positiveNumber(of: .count)
    let interval = try invocation.duration(of: .interval) ?? .seconds(1)
    let store = try location.followed()
    SystemCalls.watchInterruptions()
    try location.use(store) { store in
      if !invocation.has(.json), console.screenSize != nil {
        try draw(store, location, limit, interval, console)
      } else {
        try samples(of: store, location, limit, interval) { sample in
          let page = TopPage(sample: sample, path: location.path)
          try console.print(invocation.has(.json) ? sample.json.text : page.line)
          try console.finish()
        }
      }
    }
  }

  private static func samples(
    of store: Store, _ location: StoreLocation, _ limit: Int?, _ interval: Duration,
    _ show: (TopSample) throws -> Void
  ) throws {
    var last: TopSample?
    var count = 0
    while SystemCalls.interruption == 0 {
      let sample = try TopSample(store, at: location, after: last)
      try show(sample)
      last = sample
      count += 1
      if count == limit { return }
      SystemCalls.pause(for: interval)
    }
  }

  /// Shows the samples on the alternate screen. The terminal's former screen returns at the end,
  /// even after an error. Without an error, the last page is printed below that screen.
  private static func draw(
    _ store: Store, _ location: StoreLocation, _ limit: Int?, _ interval: Duration,
    _ console: Console
  ) throws {
    let (ownScreen, hideCursor) = ("\u{1B}[?1049h", "\u{1B}[?25l")
    let (formerScreen, showCursor) = ("\u{1B}[?1049l", "\u{1B}[?25h")
    let (toTop, clearLine, clearBelow) = ("\u{1B}[H", "\u{1B}[K", "\u{1B}[J")
    func write(_ text: String) throws { try console.write(Array(text.utf8).rawSpan) }
    var page: [String] = []
    try write(ownScreen + hideCursor)
    let outcome = Result {
      try samples(of: store, location, limit, interval) { sample in
        let size = console.screenSize ?? (80, 24)
        page = TopPage(sample: sample, path: location.path)
          .lines(columns: size.columns, rows: size.rows, painter: console.painter)
        try write(toTop + page.map { $0 + clearLine + "\n" }.joined() + clearBelow)
      }
    }
    try write(showCursor + formerScreen)
    try outcome.get()
    for line in page { try console.print(line) }
  }
}
