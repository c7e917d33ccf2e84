import FoundationEssentials
import Testing

@testable import CairnBench

@Suite("The report")
struct ReportTests {
  private static func round(_ rate: Int, latency: UInt64) -> RoundResult {
    var latencies = LatencyHistogram()
    latencies.record(latency)
    return RoundResult(
      operationCount: rate, nanoseconds: 1_000_000_000, latencies: latencies,
      diskByteCount: 4_096, peakResidentByteCount: rate)
  }

  private static let section = Plan.Section(
    stores: [.cairn, .filePerKey], workloads: Workload.allCases, keyCount: 50_000,
    valueByteCount: 100, roundCount: 3, milliseconds: 200)

  private static let results = [
    BenchResult(
      store: .cairn, workload: .get, section,
      rounds: [
        round(3_000_000, latency: 100), round(1_000_000, latency: 120),
        round(2_000_000, latency: 140),
      ]),
    BenchResult(
      store: .filePerKey, workload: .get, section, rounds: [round(100_000, latency: 9_000)]),
    BenchResult(
      store: .cairn, workload: .durablePut, section, rounds: [round(9_000, latency: 100_000)]),
  ]

  @Test("takes the median of the rounds and the extremes")
  func medians() {
    let result = Self.results[0]
    #expect(result.opsPerSecond == 2_000_000)
    #expect(result.minimumOpsPerSecond == 1_000_000)
    #expect(result.maximumOpsPerSecond == 3_000_000)
    #expect(result.operations == 6_000_000)
    #expect(result.peakResidentBytes == 3_000_000)
    #expect(result.p50Nanoseconds == 120)
    #expect(Self.results[1].cairnRatio(in: Self.results) == 20)
    #expect(result.cairnRatio(in: Self.results) == nil)
  }

  @Test("as JSON has the fields of the specification")
  func json() throws {
    let report = BenchReport(
      machine: .current, filesystem: FileSystem(of: "/"), seed: 7,
      options: ReportedOptions(BenchOptions(), Plan(BenchOptions())), results: Self.results)
    let bytes = try report.json()
    let text = String(decoding: bytes, as: UTF8.self)
    for field in ["machine", "filesystem", "seed", "options", "results"] {
      #expect(text.contains("\n  \"\(field)\" : "), "\(field)")
    }
    for field in [
      "store", "workload", "n", "valueBytes", "operations", "opsPerSecond", "p50Nanoseconds",
      "p99Nanoseconds", "p999Nanoseconds", "diskBytes", "peakResidentBytes", "durability",
    ] {
      let count = text.split(separator: "\n").count { $0.hasPrefix("      \"\(field)\" : ") }
      #expect(count == Self.results.count, "\(field)")
    }
    #expect(text.contains("\"store\" : \"file-per-key\""))
    #expect(text.contains("\"durability\" : \"durable\""))
    let decoded = try JSONDecoder().decode(BenchReport.self, from: Data(bytes))
    #expect(decoded.results.count == Self.results.count)
  }

  @Test("as a table aligns its columns and shows the ratio")
  func table() {
    let lines = ReportTable(section: Self.section, results: Self.results).text
      .split(separator: "\n")
    #expect(lines.count == 2 + Self.results.count)
    #expect(lines[0] == "50,000 keys × 100 B")
    #expect(lines[2].contains("2.00 M/s") && lines[2].contains("1.00 – 3.00 M/s"))
    #expect(lines[3].hasSuffix("20.0 ×"))
  }

  /// Every store in some rows, each half as fast as the one before it.
  private static let wideSection = Plan.Section(
    stores: StoreKind.allCases, workloads: Workload.allCases, keyCount: 1_000_000,
    valueByteCount: 100, roundCount: 3, milliseconds: 200)

  private static let wideResults = [Workload.fill, .get, .getMissing].flatMap { workload in
    StoreKind.allCases.filter { $0.supports(workload) || StoreKind.peers.contains($0) }
      .enumerated().map { place, store in
        BenchResult(
          store: store, workload: workload, wideSection,
          rounds: [round(8_192_000 >> place, latency: 100)])
      }
  }

  @Test("with many stores has the ratio of Cairn to each of them, in the row and side by side")
  func manyStores() throws {
    let table = ReportTable(section: Self.wideSection, results: Self.wideResults).text
    let fill = StoreKind.allCases.filter { $0.supports(.fill) || StoreKind.peers.contains($0) }
    #expect(fill.count == 13)
    let lines = table.split(separator: "\n").dropFirst(2)
    for (place, line) in lines.prefix(fill.count).enumerated() {
      #expect(line.contains(" \(fill[place].rawValue) "))
      #expect(place == 0 || line.hasSuffix(" " + Figures.ratio(Double(1 << place))))
    }
    let text = RatioTable(section: Self.wideSection, results: Self.wideResults).text
    let ratios = try #require(text).split(separator: "\n")
    let heading = ratios[1].split(separator: " ").map(String.init)
    #expect(heading == ["workload", "cairn"] + fill.dropFirst().map(\.rawValue))
    #expect(ratios.count == 5)
    let row = ratios[2].split(separator: " ").filter { $0 != "×" }.map(String.init)
    #expect(
      row == [
        "fill", "8.19", "M/s", "2.00", "4.00", "8.00", "16.0", "32.0", "64.0", "128", "256", "512",
        "1024",
        "2048", "4096",
      ])
    // The raw copies and writes read nothing.
    #expect(ratios[3].hasSuffix("–") && !ratios[2].contains("–"))
    #expect(ratios.dropFirst().allSatisfy { $0.count == ratios[1].count })
  }

  @Test("with Cairn and one other has no table of ratios")
  func fewStores() {
    #expect(RatioTable(section: Self.section, results: Self.results).text == nil)
    #expect(RatioTable(section: Self.wideSection, results: Self.results).text == nil)
  }

  @Test("as SVG is well-formed")
  func svg() {
    let chart = ReportChart(sections: [(Self.section, Self.results)], caption: "a < b & c")
    expectWellFormed(chart.svg)
    #expect(chart.svg.contains("a &lt; b &amp; c"))
    #expect(chart.svg.contains("prefers-color-scheme:dark"))
    expectWellFormed(ReportChart(sections: [], caption: "").svg)
    let wide = ReportChart(sections: [(Self.wideSection, Self.wideResults)], caption: "").svg
    expectWellFormed(wide)
    for store in StoreKind.allCases { #expect(wide.contains(">\(store.rawValue)</text>")) }
  }

  @Test("as a summary has six workloads of the five stores that a reader knows, on one screen")
  func summary() {
    let rows = SummaryChart.workloads.flatMap { row in
      SummaryChart.stores.enumerated().map { place, peer in
        BenchResult(
          store: peer.store, workload: row.workload, Self.section,
          rounds: [Self.round(8_192_000 >> place, latency: 100)])
      }
    }
    let chart = SummaryChart(results: Self.wideResults + rows, caption: "a < b").svg
    expectWellFormed(chart)
    #expect(SummaryChart.width <= 700 && SummaryChart.height <= 350)
    #expect(chart.contains("Operations per second, 50,000 keys × 100 B<"))
    #expect(chart.contains("a &lt; b") && chart.contains("prefers-color-scheme:dark"))
    for row in SummaryChart.workloads { #expect(chart.contains(">\(row.title)</text>")) }
    for (place, peer) in SummaryChart.stores.enumerated() {
      #expect(chart.count(of: ">\(peer.name)</text>") == 6)
      // Each is half as fast as the one before it, and its bar is half as long.
      #expect(chart.count(of: " width=\"\(150 >> place)\" height") == 6)
      #expect(place == 0 || chart.count(of: " \(Figures.ratio(Double(1 << place)))<") == 6)
    }
    // Nothing extends beyond the picture.
    for match in chart.matches(of: #/ (?:x|y)="(\d+)"/#) {
      #expect(Int(match.1).map { $0 < 700 } == true)
    }
    // A store that was not measured has no bar and no place.
    let without = SummaryChart(
      results: rows.filter { $0.store != .lmdb && $0.workload != .get }, caption: ""
    ).svg
    expectWellFormed(without)
    #expect(!without.contains("LMDB") && !without.contains(">get</text>"))
    expectWellFormed(SummaryChart(results: [], caption: "").svg)

    var section = Self.section
    section.stores = SummaryChart.stores.map(\.store)
    let lines = SummaryTable(section: section, results: rows).text.split(separator: "\n")
    #expect(lines.count == 8 && lines.allSatisfy { $0.count <= 80 })
    #expect(lines[1].split(separator: " ").first == "Cairn")
    #expect(lines[2].hasPrefix("set, new key") && lines[2].contains("8.19 M/s"))
    #expect(lines[2].hasSuffix("16.0 ×"))
    section.stores = [.cairn, .filePerKey]
    let plain = SummaryTable(
      section: section, results: rows.filter { section.stores.contains($0.store) })
    #expect(plain.text.contains("file per key\n") && !plain.text.contains("LMDB"))
  }

  @Test(
    "that the README shows is drawn from the results beside it",
    arguments: ["speed", "images"])
  func readme(name: String) throws {
    let root = URL(filePath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let report = try BenchReport.read(from: root.appending(path: "Docs/\(name).json").path)
    #expect(report.options.optimized)
    #expect(report.results.count == 30)
    let chart = SummaryChart(results: report.results, caption: report.caption).svg
    #expect(chart == ProcFile.text(root.appending(path: "Docs/\(name).svg").path))
  }

  @Test("read from its file has the sections of the run, and so the same charts")
  func fromFile() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/r.json"
    let results = Self.results + Self.wideResults
    let report = BenchReport(
      machine: .current, filesystem: FileSystem(of: "/"), seed: 7,
      options: ReportedOptions(BenchOptions(), Plan(BenchOptions())), results: results)
    try Data(report.json()).write(to: URL(filePath: path))
    let read = BenchReport.sections(of: try BenchReport.read(from: path).results)
    #expect(read.map(\.section.keyCount) == [50_000, 1_000_000])
    #expect(read.map(\.section.valueByteCount) == [100, 100])
    #expect(read.map(\.results.count) == [Self.results.count, Self.wideResults.count])
    var wide = Self.wideSection
    wide.stores = StoreKind.allCases.filter { kind in
      Self.wideResults.contains { $0.store == kind }
    }
    #expect(
      ReportChart(sections: read, caption: "x").svg
        == ReportChart(
          sections: [(Self.section, Self.results), (wide, Self.wideResults)], caption: "x"
        ).svg)
    try Data("{}".utf8).write(to: URL(filePath: path))
    let error = #expect(throws: BenchFailure.self) { try BenchReport.read(from: path) }
    #expect(try #require(error).description.contains(path))
  }

  @Test("by the number of keys is a table and a chart")
  func scale() throws {
    var results: [BenchResult] = []
    for count in [10_000, 1_000_000] {
      let section = Plan.Section(
        stores: [.cairn], workloads: Workload.scale, keyCount: count, valueByteCount: 100,
        roundCount: 3, milliseconds: 200)
      for workload in Workload.scale {
        var round = Self.round(100_000_000_000 / count, latency: 250)
        round.writtenByteCount = round.operationCount * 234
        round.indexByteCount = 24 * count
        results.append(
          BenchResult(store: .cairn, workload: workload, section, rounds: [round]))
      }
    }
    let lines = ScaleTable(results: results).text.split(separator: "\n")
    #expect(lines.count == 4)
    #expect(lines[2].hasPrefix("10,000     cairn") && lines[2].contains("100 ns"))
    #expect(lines[3].hasPrefix("1,000,000  cairn") && lines[3].contains("10.0 µs"))
    #expect(lines[3].contains("24.0 B/key") && lines[3].hasSuffix("2.00 ×"))
    #expect(lines[3].contains("11.2 MiB/s"))
    let chart = ScaleChart(results: results, caption: "a < b").svg
    expectWellFormed(chart)
    #expect(chart.contains(">1,000,000<") && chart.contains(">get-missing<"))
    expectWellFormed(ScaleChart(results: [], caption: "").svg)
  }

  @Test("by eviction policy is a table and a chart, of streams that follow from the seed alone")
  func policies() throws {
    var results: [PolicyResult] = []
    for stream in RequestStream.allCases {
      let requests = stream.requests(count: 50_000, seed: 7)
      #expect(requests.count == 50_000 && requests == stream.requests(count: 50_000, seed: 7))
      results += try PolicyRun(isQuick: true, seed: 7).results(of: stream)
    }
    func hits(_ stream: RequestStream, _ policy: String) -> Int {
      results.first { $0.stream == stream && $0.policy == policy }?.hitCount ?? -1
    }
    #expect(hits(.loop, "lru") == 0 && hits(.loop, "s3-fifo") > 10_000)
    #expect(hits(.oneHit, "s3-fifo") > hits(.oneHit, "lru"))
    #expect(hits(.scanAndHot, "s3-fifo") > hits(.scanAndHot, "sieve"))
    #expect(hits(.zipfShift, "s3-fifo") > hits(.zipfShift, "lru"))
    #expect(hits(.toAndFro, "lru") > hits(.toAndFro, "s3-fifo"))
    let report = PolicyReport(results: results, caption: "a < b")
    let lines = report.table.split(separator: "\n")
    #expect(lines.count == 2 + results.count && lines[0] == "1,000 entries")
    #expect(lines[5].hasPrefix("loop          lru       0.0 %"))
    expectWellFormed(report.svg)
    #expect(report.svg.contains(">one-hit</text>") && report.svg.contains("a &lt; b"))
    let decoded = try JSONDecoder().decode(
      [PolicyResult].self, from: Data(try PolicyRun.json(results)))
    #expect(decoded == results)
  }

  /// Every element is closed in order, every attribute is quoted, every special character is
  /// escaped.
  private func expectWellFormed(_ text: String) {
    var open: [Substring] = []
    var rest = text[...]
    while let begin = rest.firstIndex(of: "<") {
      let content = rest[..<begin]
      #expect(!content.contains(">"))
      rest = rest[rest.index(after: begin)...]
      guard let end = rest.firstIndex(of: ">") else {
        Issue.record("a tag does not end")
        return
      }
      let tag = rest[..<end]
      rest = rest[rest.index(after: end)...]
      #expect(tag.count { $0 == "\"" }.isMultiple(of: 2), "\(tag)")
      let name = tag.drop { $0 == "/" }.prefix { $0.isLetter }
      if tag.hasPrefix("/") {
        #expect(open.popLast() == name)
      } else if !tag.hasSuffix("/") {
        open.append(name)
      }
    }
    #expect(open.isEmpty)
    for part in text.split(separator: "&", omittingEmptySubsequences: false).dropFirst() {
      #expect(["amp;", "lt;", "gt;"].contains { part.hasPrefix($0) })
    }
  }

  @Test(
    "numbers have three digits",
    arguments: [
      (0.000_4, "0.00040"), (0.012_34, "0.0123"), (0.123, "0.12"), (1.236, "1.24"), (9.996, "10.0"),
      (12.34, "12.3"), (99.96, "100"),
      (1_234.5, "1235"),
    ])
  func threeDigits(value: Double, text: String) {
    #expect(Figures.threeDigits(value) == text)
  }

  @Test("rates, times and sizes have units")
  func units() {
    #expect(Figures.rate(2_345_678) == "2.35 M/s")
    #expect(Figures.rate(17_000) == "17.0 k/s")
    #expect(Figures.rate(12) == "12.0  /s")
    #expect(Figures.duration(410) == "410 ns")
    #expect(Figures.duration(6_300) == "6.30 µs")
    #expect(Figures.bytes(3 << 20) == "3.00 MiB")
    #expect(Figures.count(1_234_567) == "1,234,567")
    #expect(Figures.count(12) == "12")
  }
}

extension String {
  /// How often the string contains a text.
  fileprivate func count(of text: String) -> Int {
    ranges(of: text).count
  }
}
