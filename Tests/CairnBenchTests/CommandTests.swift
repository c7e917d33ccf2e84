import CairnLibC
import FoundationEssentials
import Testing

@testable import CairnBench

/// Runs the command that was built beside the tests.
@Suite("The cairn-bench command")
struct CommandTests {
  private var program: String {
    get throws {
      // .build/<configuration>/ holds the test bundle and the command.
      let bundle = try #require(
        CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? CommandLine.arguments.first)
      let folder = bundle.split(separator: "/", omittingEmptySubsequences: false).dropLast()
      return folder.joined(separator: "/") + "/cairn-bench"
    }
  }

  private func run(_ arguments: [String]) throws -> (status: Int32, output: String) {
    let program = try program
    let directory = try TemporaryDirectory()
    let output = directory.path + "/output"
    let quoted = ([program] + arguments).map { "'\($0)'" }.joined(separator: " ")
    var status: Int32 = 0
    // SAFETY: the strings are copied for the call and freed after it; the list ends with null.
    var list: [UnsafeMutablePointer<CChar>?] = unsafe []
    for argument in ["sh", "-c", "exec \(quoted) > '\(output)' 2>&1"] {
      unsafe list.append(strdup(argument))
    }
    unsafe list.append(nil)
    defer { for index in unsafe list.indices { unsafe free(list[index]) } }
    var process: pid_t = 0
    try #require(unsafe posix_spawn(&process, "/bin/sh", nil, nil, list, environ) == 0)
    // A command that takes longer than any run should is killed. Its status then matches no
    // expectation.
    let limit = ContinuousClock.now + .seconds(300)
    while unsafe waitpid(process, &status, WNOHANG) == 0 {
      if ContinuousClock.now > limit { kill(process, SIGKILL) }
      usleep(1000)
    }
    guard status & 0x7F == 0 else {
      return (128 + status & 0x7F, "signal \(status & 0x7F) \(ProcFile.text(output))")
    }
    return (status >> 8 & 0xFF, ProcFile.text(output))
  }

  @Test("measures the longest gets and sets in each situation, and leaves nothing behind")
  func stalls() throws {
    let directory = try TemporaryDirectory()
    let result = try run(["--stalls", "--quick", "--dir", directory.path])
    #expect(result.status == 0, "\(result.output)")
    let rows = result.output.split(separator: "\n")
    #expect(rows.count { $0.contains(" µs") || $0.contains(" ms") || $0.contains(" ns") } == 11)
    #expect(rows.allSatisfy { $0.count <= 80 })
    #expect(try DirectoryTree.names(in: directory.path) == [])
  }

  @Test("measures stores of images, also under a limit")
  func images() throws {
    let directory = try TemporaryDirectory()
    let chart = directory.path + "/images.svg"
    let result = try run(
      ["--images", "--quick", "--n", "120", "--dir", directory.path, "--summary", chart])
    #expect(result.status == 0, "\(result.output)")
    #expect(result.output.contains("120 images of 20 to 500 kB"))
    #expect(result.output.contains("hits under the limit: cairn "))
    #expect(ProcFile.text(chart).contains(" % hits"))
    #expect(try DirectoryTree.names(in: directory.path) == ["images.svg"])
  }

  @Test("counts what compaction copies: less with a higher bound, and little beyond the bound")
  func compaction() throws {
    let directory = try TemporaryDirectory()
    let result = try run(["--compaction", "--quick", "--dir", directory.path])
    #expect(result.status == 0, "\(result.output)")
    // Bound, kind of overwrites, bytes copied, space.
    var rows: [(bound: Double, copied: Double, space: Double)] = []
    for line in result.output.split(separator: "\n") {
      let parts = line.split(separator: " ")
      guard parts.count == 4, parts[1] == "uniform", let bound = Double(parts[0]),
        let copied = Double(parts[2]), let space = Double(parts[3])
      else { continue }
      rows.append((bound, copied, space))
    }
    try #require(rows.count == 2, "\(result.output)")
    let copied = rows.map(\.copied)
    #expect(copied == copied.sorted(by: >))
    // In theory, 0.72 at a bound of 1.5, for uniform overwrites and few whole segments.
    #expect(copied[0] > 0.4 && copied[0] < 1)
    for row in rows {
      #expect(row.space < row.bound + 0.2 && row.space > row.bound - 0.3, "\(result.output)")
    }
    #expect(try DirectoryTree.names(in: directory.path) == [])
  }

  @Test("measures file-per-key and bare-map, writes both files and leaves nothing behind")
  func quickRun() throws {
    let directory = try TemporaryDirectory()
    let result = try run([
      "--quick", "--stores", "file-per-key,bare-map", "--n", "50", "--value-bytes", "100",
      "--dir", directory.path, "--json", directory.path + "/r.json", "--svg",
      directory.path + "/r.svg", "--summary", directory.path + "/s.svg",
    ])
    #expect(result.status == 0, "\(result.output)")
    #expect(Set(try DirectoryTree.names(in: directory.path)) == ["r.json", "r.svg", "s.svg"])
    let json = Data(ProcFile.text(directory.path + "/r.json").utf8)
    let report = try JSONDecoder().decode(BenchReport.self, from: json)
    let filePerKey = report.results.filter { $0.store == .filePerKey }.map(\.workload)
    #expect(
      filePerKey
        == Workload.allCases.filter { $0.isStandard && StoreKind.filePerKey.supports($0) })
    #expect(report.results.allSatisfy { $0.opsPerSecond > 0 && $0.n == 50 && $0.valueBytes == 100 })
    #expect(ProcFile.text(directory.path + "/r.svg").hasSuffix("</svg>\n"))
    #expect(ProcFile.text(directory.path + "/s.svg").contains(">file per key</text>"))
    let drawn = try run([
      "--from", directory.path + "/r.json", "--svg", directory.path + "/r2.svg", "--summary",
      directory.path + "/s2.svg",
    ])
    #expect(drawn.status == 0 && drawn.output == "")
    for name in ["r", "s"] {
      #expect(
        ProcFile.text(directory.path + "/\(name).svg")
          == ProcFile.text(directory.path + "/\(name)2.svg"))
    }
  }

  @Test("draws nothing from a file without results")
  func noResults() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/absent.json"
    let result = try run(["--from", path, "--svg", directory.path + "/r.svg"])
    #expect(result.status == 1 && result.output.contains("absent.json"))
    #expect(try DirectoryTree.names(in: directory.path) == [])
  }

  @Test("measures every store of the build")
  func everyStore() throws {
    let directory = try TemporaryDirectory()
    let result = try run([
      "--quick", "--stores", "all", "--n", "50", "--value-bytes", "100", "--dir", directory.path,
      "--json", directory.path + "/r.json",
    ])
    #expect(result.status == 0, "\(result.output)")
    #expect(Set(try DirectoryTree.names(in: directory.path)) == ["r.json"])
    let json = Data(ProcFile.text(directory.path + "/r.json").utf8)
    let report = try JSONDecoder().decode(BenchReport.self, from: json)
    for kind in StoreKind.onDisk {
      let workloads = report.results.filter { $0.store == kind }.map(\.workload)
      #expect(
        workloads == Workload.allCases.filter { $0.isStandard && kind.supports($0) }, "\(kind)")
    }
    #expect(result.output.contains("how many times as fast cairn was"))
    #expect(
      result.output.contains("WITHOUT PEERS") == !StoreKind.peers.allSatisfy(\.isBuilt))
  }

  @Test("compares every target with its aim, or names the package that it needs")
  func targets() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/t.json"
    let result = try run(["--targets", "--quick", "--dir", directory.path, "--json", path])
    #expect(result.status == 0, "\(result.output)")
    #expect(try DirectoryTree.names(in: directory.path) == ["t.json"])
    let report = try JSONDecoder().decode(
      TargetReport.self, from: Data(ProcFile.text(path).utf8))
    let targets = Target.all(.quick)
    #expect(report.targets.map(\.row) == targets.map(\.name))
    for (target, outcome) in zip(targets, report.targets) {
      var missing = target.missingPackages()
      if case .instructions = target.measure { missing = ["a longer run"] }
      #expect(outcome.missing == missing)
      #expect((outcome.figure == nil) == !missing.isEmpty, "\(outcome)")
      #expect((outcome.isMet == nil) == !missing.isEmpty)
      #expect(outcome.figure.map { $0 > 0 } != false, "\(outcome)")
    }
    // Only what a target needs is measured.
    let needed = Set(targets.filter { $0.missingPackages().isEmpty }.flatMap(\.rows))
    let measured = report.results.map {
      Target.Row(
        store: $0.store, workload: $0.workload, keyCount: $0.n, valueByteCount: $0.valueBytes)
    }
    #expect(Set(measured) == needed && measured.count == needed.count)
    #expect(result.output.contains("needs liblmdb-dev") == !StoreKind.lmdb.isBuilt)
    let hasTwoProcessors = sysconf(Int32(_SC_NPROCESSORS_ONLN)) > 1
    #expect(result.output.contains("ns there and back") == hasTwoProcessors)
  }

  private static let hasTools = ["strip", "valgrind"].allSatisfy {
    unsafe access("/usr/bin/\($0)", X_OK) == 0
  }

  @Test("counts the instructions of one operation", .enabled(if: hasTools))
  func instructions() throws {
    let directory = try TemporaryDirectory()
    let outcome = try InstructionCount.of(
      [.tieredGet], times: 10, program: program, in: directory.path)
    guard case .counted(let counts) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    // The bounds also fit a debug build; a release build needs 1,119.
    #expect((1_000..<1_000_000).contains(try #require(counts[.tieredGet])), "\(counts)")
  }

  @Test("wrong usage prints one line with a suggestion, and exits with 2")
  func usage() throws {
    let result = try run(["--quik"])
    #expect(result.status == 2)
    #expect(
      result.output == "cairn-bench: unknown argument: --quik; did you mean --quick?; "
        + "see cairn-bench --help\n")
  }

  @Test("help fits a page")
  func help() throws {
    let result = try run(["--help"])
    #expect(result.status == 0)
    #expect(result.output.hasPrefix("usage: cairn-bench"))
    #expect(result.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
  }

  @Test("a results file that cannot be written is reported before the run")
  func resultsFile() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/absent/r.json"
    let result = try run(["--quick", "--dir", directory.path, "--json", path])
    #expect(result.status == 1)
    #expect(result.output == "cairn-bench: open \(path): No such file or directory\n")
  }

  @Test("exits with 1 if it cannot make its directory")
  func missingDirectory() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/absent"
    let result = try run(["--quick", "--dir", path])
    #expect(result.status == 1)
    #expect(result.output.contains(path))
  }
}
