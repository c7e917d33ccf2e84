import CairnStore
import Foundation
import FuzzSupport
import Testing

@testable import Cairn

@Suite("What the kernel reports about memory", .timeLimit(.minutes(30)))
struct SystemPressureTests {
  /// A directory that replaces `/`, with these files.
  private func tree(_ files: [String: String]) throws -> String {
    let root = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    for (path, text) in files {
      let url = root.appending(path: path)
      try FileManager.default.createDirectory(
        at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
      try text.write(to: url, atomically: true, encoding: .utf8)
    }
    return root.path
  }

  private func limitedGroup(current: Int, inactive: Int, limit: String) -> [String: String] {
    [
      "proc/self/cgroup": "0::/box\n",
      "proc/self/mountinfo": "30 24 0:26 / /cg rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
      "cg/box/memory.current": "\(current)\n", "cg/box/memory.max": "\(limit)\n",
      "cg/box/memory.high": "max\n", "cg/box/memory.stat": "anon 5\ninactive_file \(inactive)\n",
    ]
  }

  @Test(
    "If the kernel does not notify, the usage of a version 2 group decides",
    arguments: [(910, MemoryPressure.moderate), (950, .high), (990, .critical)])
  func use(current: Int, pressure: MemoryPressure) throws {
    let root = try tree(limitedGroup(current: current + 100, inactive: 100, limit: "1000"))
    defer { try? FileManager.default.removeItem(atPath: root) }
    let source = SystemPressureSource(root: root, pollInterval: .milliseconds(1))
    #expect(source.next() == pressure)
  }

  @Test("A lasting shortage is reported again after a while, a growing one at once")
  func repeated() throws {
    let root = try tree(limitedGroup(current: 920, inactive: 0, limit: "1000"))
    defer { try? FileManager.default.removeItem(atPath: root) }
    let source = SystemPressureSource(
      root: root, pollInterval: .milliseconds(1), repeatInterval: .milliseconds(300))
    #expect(source.next() == .moderate)
    let began = ContinuousClock.now
    #expect(source.next() == .moderate)
    #expect(began.duration(to: .now) >= .milliseconds(299))
    let patient = SystemPressureSource(root: root, pollInterval: .milliseconds(1))
    #expect(patient.next() == .moderate)
    try "985\n".write(toFile: root + "/cg/box/memory.current", atomically: true, encoding: .utf8)
    #expect(patient.next() == .critical)
  }

  @Test("A container sees its own group as the root")
  func container() throws {
    var files = limitedGroup(current: 960, inactive: 0, limit: "1000")
    files["proc/self/cgroup"] = "0::/\n"
    let root = try tree(
      Dictionary(
        uniqueKeysWithValues: files.map {
          ($0.key.replacingOccurrences(of: "cg/box/", with: "cg/"), $0.value)
        }))
    defer { try? FileManager.default.removeItem(atPath: root) }
    let source = SystemPressureSource(root: root, pollInterval: .milliseconds(1))
    #expect(source.next() == .high)
  }

  @Test(
    "A shortage of descriptors delays what is watched, and does not end it",
    arguments: [0..<3, 1..<2, 1..<9, 4..<5, 5..<6])
  func descriptorShortage(missing: Range<Int>) throws {
    let root = try tree(limitedGroup(current: 960, inactive: 0, limit: "1000"))
    defer { try? FileManager.default.removeItem(atPath: root) }
    let count = Lock(0)
    let source = SystemPressureSource(root: root, pollInterval: .milliseconds(1)) {
      count.withLock { count in
        defer { count += 1 }
        return missing.contains(count)
      }
    }
    #expect(source.next() == .high)
    // A partial set does not last.
    try "985\n".write(toFile: root + "/cg/box/memory.current", atomically: true, encoding: .utf8)
    #expect(source.next() == .critical)
  }

  @Test("A version 1 group, and one that a container sees part of")
  func versionOne() throws {
    let root = try tree([
      "proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/docker/abc/inner\n",
      "proc/self/mountinfo":
        "1 0 0:5 / /proc rw - proc proc rw\n"
        + "31 24 0:27 /docker/abc /cg/memory rw - cgroup cgroup rw,memory\n",
      "cg/memory/inner/memory.usage_in_bytes": "96000000000\n",
      "cg/memory/inner/memory.limit_in_bytes": "100000000000\n",
      "cg/memory/inner/memory.stat": "total_inactive_file 0\n",
    ])
    defer { try? FileManager.default.removeItem(atPath: root) }
    let source = SystemPressureSource(root: root, pollInterval: .milliseconds(1))
    #expect(source.next() == .high)
  }

  @Test(
    "Without a limit and without notifications, nothing is reported and nothing is awaited",
    arguments: [
      [:], ["proc/self/cgroup": "nonsense\n0:\n:::\n", "proc/self/mountinfo": "- - -\n1 2 3\n\n"],
      [
        "proc/self/cgroup": "4:memory:/a\n",
        "proc/self/mountinfo": "1 0 0:5 / /cg rw - cgroup cgroup rw,memory\n",
        "cg/a/memory.limit_in_bytes": "9223372036854771712\n",
        "cg/a/memory.usage_in_bytes": "100\n",
      ],
      [
        "proc/self/cgroup": "0::/a\n",
        "proc/self/mountinfo": "1 0 0:5 / /cg rw - cgroup2 cgroup2 rw\n",
        "cg/a/memory.max": "max\n", "cg/a/memory.current": "100\n",
      ],
    ])
  func nothing(files: [String: String]) throws {
    let root = try tree(files)
    defer { try? FileManager.default.removeItem(atPath: root) }
    let source = SystemPressureSource(root: root)
    #expect(source.next() == nil)
  }

  /// Where a test can make a version 2 group with pressure stall information, if it can.
  static let groups = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].first {
    let probe = "\($0)/cairn-probe-\(getpid())"
    return unsafe access($0 + "/memory.pressure", W_OK) == 0 && mkdir(probe, 0o755) == 0
      && rmdir(probe) == 0
  }

  @Test(
    "After the removal of a watched group, the source watches the group that the process is in",
    .enabled(if: groups != nil, "needs root and a version 2 group with memory.pressure"))
  func removedGroup() throws {
    let groups = try #require(Self.groups)
    let names = (1...2).map { "cairn-test-\(getpid())-\($0)" }
    // The last group, "box", is short of memory, which ends the wait.
    var files = limitedGroup(current: 990, inactive: 0, limit: "1000")
    let mounts = files["proc/self/mountinfo"] ?? ""
    files["proc/self/cgroup"] = "0::/\(names[0])\n"
    files["proc/self/mountinfo"] = mounts.replacingOccurrences(of: "/cg", with: "/real")
    let root = try tree(files)
    defer { try? FileManager.default.removeItem(atPath: root) }
    try FileManager.default.createSymbolicLink(
      atPath: root + "/real", withDestinationPath: groups)
    for name in names {
      let isMade = unsafe mkdir("\(groups)/\(name)", 0o755) == 0
      try #require(isMade)
    }
    func write(_ text: String, _ path: String) throws {
      try text.write(toFile: "\(root)/proc/self/\(path)", atomically: true, encoding: .utf8)
    }
    let source = SystemPressureSource(root: root)
    func watches() -> Bool { source.state.withLock { $0.watches.count } >= 3 }
    let ended = Record<MemoryPressure?>()
    Thread.detachNewThread { ended.add(source.next()) }
    #expect(comesTrue(watches))
    try write("0::/\(names[1])\n", "cgroup")
    let isGone = unsafe rmdir("\(groups)/\(names[0])") == 0
    #expect(isGone)
    Thread.sleep(forTimeInterval: 0.2)
    // The files of the removed group would report a critical shortage at once.
    #expect(ended.all != [.critical])
    #expect(comesTrue(watches))
    try write(mounts, "mountinfo")
    try write("0::/box\n", "cgroup")
    let isLastGone = unsafe rmdir("\(groups)/\(names[1])") == 0
    #expect(isLastGone)
    #expect(comesTrue { ended.all == [.critical] })
  }

  /// Why a test of the real kernel cannot run here, if it cannot.
  static var missing: Comment? {
    let descriptor = unsafe open("/proc/pressure/memory", O_RDWR | O_CLOEXEC)
    if descriptor < 0 { return "this kernel has no pressure stall information to write to" }
    close(descriptor)
    return nil
  }

  @Test(
    "The real kernel accepts the triggers, and reports no error",
    .enabled(if: missing == nil, "needs /proc/pressure/memory, Linux 4.20 with CONFIG_PSI"))
  func realKernel() {
    let source = SystemPressureSource(pollInterval: .milliseconds(200))
    let watches = source.state.withLock { state in
      source.watch(&state)
      return state.watches
    }
    #expect(watches.count >= 3)
    let signals = source.wait(watches.map(\.descriptor), polls: true)
    // A machine that is short of memory may report it.
    #expect(signals.allSatisfy { !$0.hasError })
  }
}
