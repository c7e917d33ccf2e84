import CairnLibC
import CommandText

/// `cairn-bench`: Cairn and its peers under the same workloads.
///
/// Exit status: 0 success; 1 a store returned wrong data or failed; 2 usage error.
@main
enum CairnBench {
  static func main() {
    let arguments = Array(CommandLine.arguments.dropFirst())
    if arguments.count == 2, arguments[0] == WorkerMain.argument {
      exit(WorkerMain.run(arguments[1]))
    }
    if arguments.first == OperationRun.argument {
      exit(OperationRun.run(Array(arguments.dropFirst())))
    }
    if arguments.first == SmallStores.argument {
      exit(SmallStores.run(Array(arguments.dropFirst())))
    }
    if arguments.first == TaskRun.argument { exit(TaskRun.run(Array(arguments.dropFirst()))) }
    do {
      guard let options = try BenchOptions.parse(arguments) else {
        for line in BenchOptions.usage.lines(width: Terminal.textWidth(STDOUT_FILENO)) {
          print(line)
        }
        exit(0)
      }
      Cleanup.handleSignals()
      try run(options)
      Cleanup.perform()
      exit(0)
    } catch let error as UsageError {
      complain("\(error); see cairn-bench --help")
      exit(2)
    } catch {
      Cleanup.perform()
      // The reader of the output has closed it.
      if case BenchFailure.system(_, "standard output", EPIPE) = error { exit(128 + SIGPIPE) }
      complain("\(error)")
      exit(1)
    }
  }

  private static func run(_ options: BenchOptions) throws {
    if options.isPolicies { return try comparePolicies(options) }
    if let path = options.resultsPath {
      let report = try BenchReport.read(from: path)
      return try writeCharts(of: report, BenchReport.sections(of: report.results), options)
    }
    if options.isCompaction { return try countCompaction(options) }
    if options.isStalls { return try measureStalls(options) }
    if options.isTargets { return try compareWithTargets(options) }
    let plan = Plan(options)
    let machine = Machine.current
    // Check the paths before the run, which takes a long time.
    for path in [options.jsonPath, options.svgPath, options.summaryPath] {
      if let path { try write([], to: path) }
    }
    let directory = try RunDirectory(in: options.directory)
    try say(introduction(machine, directory, options))
    if !options.isQuick {
      MachineWarmUp.touchMemory(availableByteCount: Machine.availableMemoryByteCount)
    }
    var coordinator = Coordinator(
      plan: plan, seed: options.seed, directory: directory.path)
    var results: [(section: Plan.Section, results: [BenchResult])] = []
    for section in plan.sections {
      let sectionResults = try coordinator.run(section)
      results.append((section, sectionResults))
      if options.isSummary {
        try say(SummaryTable(section: section, results: sectionResults).text)
        continue
      }
      try say(ReportTable(section: section, results: sectionResults).text)
      if let ratios = RatioTable(section: section, results: sectionResults).text { try say(ratios) }
    }
    if options.isScale { try say(ScaleTable(results: results.flatMap(\.results)).text) }
    if options.isSummary {
      try say(SummaryTable.end)
    } else {
      try say(ReportTable.legend)
      try say(Highlights(results: results.flatMap(\.results)).text)
    }
    let report = BenchReport(
      machine: machine, filesystem: directory.fileSystem, seed: options.seed,
      options: ReportedOptions(options, plan), results: results.flatMap(\.results))
    if let path = options.jsonPath { try write(try report.json(), to: path) }
    try writeCharts(of: report, results, options)
  }

  private static func writeCharts(
    of report: BenchReport, _ sections: [(section: Plan.Section, results: [BenchResult])],
    _ options: BenchOptions
  ) throws {
    if let path = options.svgPath {
      let svg =
        options.isScale
        ? ScaleChart(results: report.results, caption: report.caption).svg
        : ReportChart(sections: sections, caption: report.caption).svg
      try write(Array(svg.utf8), to: path)
    }
    if let path = options.summaryPath {
      let chart = SummaryChart(results: report.results, caption: report.caption)
      try write(Array(chart.svg.utf8), to: path)
    }
  }

  private static func comparePolicies(_ options: BenchOptions) throws {
    for path in [options.jsonPath, options.svgPath] { if let path { try write([], to: path) } }
    let run = PolicyRun(isQuick: options.isQuick, seed: options.seed)
    let report = PolicyReport(
      results: try RequestStream.allCases.flatMap { try run.results(of: $0) },
      caption: "\(Figures.count(RequestStream.capacity)) entries, seed \(options.seed)")
    try say(report.table)
    try say(PolicyThreads(isQuick: options.isQuick, seed: options.seed).table)
    if let path = options.jsonPath { try write(try PolicyRun.json(report.results), to: path) }
    if let path = options.svgPath { try write(Array(report.svg.utf8), to: path) }
  }

  private static func countCompaction(_ options: BenchOptions) throws {
    let run = CompactionRun(
      isQuick: options.isQuick, seed: options.seed,
      directory: try RunDirectory(in: options.directory).path)
    let results = try run.bounds.flatMap { bound in
      try CompactionRun.Skew.allCases.map { try run.result(bound: bound, skew: $0) }
    }
    try say(CompactionRun.table(results))
  }

  private static func measureStalls(_ options: BenchOptions) throws {
    let run = StallRun(
      isQuick: options.isQuick, seed: options.seed,
      directory: try RunDirectory(in: options.directory).path)
    var rows = [StallRun.head]
    try run.run { rows.append(StallRun.row($0)) }
    try say(TextTable.aligned(rows, leftAlignedColumnCount: 1))
  }

  private static func compareWithTargets(_ options: BenchOptions) throws {
    let machine = Machine.current
    if let path = options.jsonPath { try write([], to: path) }
    let directory = try RunDirectory(in: options.directory)
    try say(introduction(machine, directory, options))
    let run = TargetRun(isQuick: options.isQuick, seed: options.seed, directory: directory.path)
    if !options.isQuick {
      MachineWarmUp.touchMemory(availableByteCount: Machine.availableMemoryByteCount)
    }
    if let time = try LineRoundTrip.nanoseconds() {
      let text = Figures.threeDigits(time)
      try say("a cache line between two processors: \(text) ns there and back\n")
    }
    let figures = try run.measure()
    let outcomes = run.outcomes(figures)
    try say(TargetTable.text(outcomes))
    if let path = options.jsonPath {
      let report = TargetReport(
        machine: machine, filesystem: directory.fileSystem, seed: options.seed,
        targets: outcomes, results: figures.results)
      try write(try report.json(), to: path)
    }
  }

  private static func introduction(
    _ machine: Machine, _ directory: RunDirectory, _ options: BenchOptions
  ) -> String {
    var text = "\(machine.summary)\n"
    text += "\(directory.fileSystem.type) on \(directory.fileSystem.device), in \(directory.path)\n"
    text += "seed \(options.seed)\n"
    if options.isSummary { text += "six workloads; this takes about 20 seconds\n" }
    if options.isTargets, !options.isQuick { text += "this takes 10 to 15 minutes\n" }
    if options.isEveryStore || options.isTargets, !StoreKind.peers.allSatisfy(\.isBuilt) {
      text += "WITHOUT PEERS: \(StoreKind.peersAdvice)\n"
    }
    #if DEBUG
      text += "BUILT WITHOUT OPTIMIZATION: the figures mean nothing\n"
    #endif
    return text
  }

  private static func write(_ bytes: [UInt8], to path: String) throws {
    // SAFETY: the path is passed as a string that outlives the call.
    let file = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard file >= 0 else { throw BenchFailure.lastSystemError("open", path) }
    defer { close(file) }
    try LineChannel.write(bytes, to: file, path: path)
  }

  /// Writes without a buffer, so that each finished section shows at once, wherever the output
  /// goes.
  private static func say(_ text: String) throws {
    try LineChannel.write(Array("\(text)\n".utf8), to: STDOUT_FILENO, path: "standard output")
  }

  private static func complain(_ text: String) {
    try? LineChannel.write(
      Array("cairn-bench: \(text)\n".utf8), to: STDERR_FILENO, path: "standard error")
  }
}
