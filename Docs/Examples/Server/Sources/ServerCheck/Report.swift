import Foundation

/// The results of a run, printed as Markdown tables.
struct Report {
  /// The last statistics that a server process returned.
  struct Statistics: Decodable {
    var pages: [String: Int]
    var persist: [String: Int]
  }

  var loads: [(kind: String, result: LoadTool.Result)] = []
  /// Times from the start of a process to its first answer: after SIGKILL, and after SIGTERM.
  var recoveries: [Duration] = []
  var restarts: [Duration] = []
  /// One sample per second: with kills, and in the last quarter.
  var restless: [Resources] = []
  var calm: [Resources] = []
  var checks: [(what: String, count: Int)] = []

  private var pages: [String: Int] = [:]
  private var persist: [String: Int] = [:]

  mutating func add(_ statistics: Statistics) {
    pages.merge(statistics.pages, uniquingKeysWith: +)
    persist = statistics.persist
  }

  func print(seconds: Int) {
    Swift.print("\n\(Self.today), \(seconds) s, \(Self.processorCount) processors:\n")
    table(
      "wrk, \(LoadTool.connectionCount) connections each",
      ["requests", "a second"] + Self.latencies + ["later than 20 s"])
    for (kind, load) in loads {
      let times = [load.p50, load.p90, load.p99, load.p999, load.max].map {
        String(format: "%.2f ms", Double($0) / 1000)
      }
      row(kind, ["\(load.requests)", "\(load.requests / seconds)"] + times + ["\(load.late)"])
    }
    table("from start to first answer", ["times", "median", "longest"])
    for (name, times) in [("after SIGKILL", recoveries), ("after SIGTERM", restarts)] {
      let sorted = times.sorted()
      row(
        name,
        ["\(sorted.count)"]
          + [sorted.isEmpty ? nil : sorted[sorted.count / 2], sorted.last].map(Self.milliseconds))
    }
    table("checked", ["times"])
    for (what, count) in checks { row(what, ["\(count)"]) }
    table("pages", ["count"])
    let memory = pages["memory.hits", default: 0]
    let disk = pages["hits", default: 0] - memory
    let made = pages["loads.started", default: 0]
    row("answered from memory", ["\(memory)"])
    row("answered from disk", ["\(disk)"])
    let joined = pages["loads.joined", default: 0]
    row("computed", ["\(made)"])
    row("waited for a computation in progress", ["\(joined)"])
    let share = Double(memory + disk) / Double(max(1, memory + disk + made + joined))
    row("hit rate", [String(format: "%.1f %%", 100 * share)])
    table(
      "resource", ["maximum with kills", "maximum without", "early median", "late median"])
    resources("memory", \.residentBytes, 1 << 20, "MiB")
    resources("memory except mapped files", \.ownBytes, 1 << 20, "MiB")
    resources("disk, persist", \.persistDiskBytes, 1 << 20, "MiB")
    resources("disk, pages", \.pagesDiskBytes, 1 << 20, "MiB")
    resources("descriptors", \.descriptorCount, 1, "")
    resources("threads", \.threadCount, 1, "")
    Swift.print("\nAt the end, the persist store held \(persist["count", default: 0]) keys.")
  }

  private func resources(
    _ name: String, _ measure: KeyPath<Resources, Int>, _ unit: Int, _ unitName: String
  ) {
    let values = [
      restless.largest(measure), calm.largest(measure), calm.median(measure, from: 0.25, to: 0.5),
      calm.median(measure, from: 0.75, to: 1),
    ]
    row(name, values.map { "\($0 / unit) \(unitName)" })
  }

  private func table(_ name: String, _ columns: [String]) {
    Swift.print("")
    row(name, columns)
    Swift.print("|---" + String(repeating: "|---", count: columns.count) + "|")
  }

  private func row(_ name: String, _ values: [String]) {
    Swift.print("| \(name) | \(values.joined(separator: " | ")) |")
  }

  private static let latencies = ["median", "90 %", "99 %", "99.9 %", "longest"]

  private static func milliseconds(_ time: Duration?) -> String {
    guard let time else { return "" }
    let (seconds, attoseconds) = time.components
    return "\(seconds * 1000 + attoseconds / 1_000_000_000_000_000) ms"
  }

  private static var today: String { String(Date.now.ISO8601Format().prefix(10)) }
  private static var processorCount: Int { ProcessInfo.processInfo.activeProcessorCount }
}
