import Cairn
import CairnLibC
import Testing

/// What Ctrl-C leaves, whenever it comes.
@Suite("Interruptions")
struct InterruptionTests {
  static let milliseconds: [UInt32] = [0, 20, 50, 100, 200, 400]

  let directory: TemporaryDirectory
  var store: String { directory("store") }

  init() throws { directory = try TemporaryDirectory() }

  /// Runs a command and interrupts it. The signal ends the command, unless it has finished before.
  private func interrupt(_ arguments: String..., after milliseconds: UInt32) throws -> Int32 {
    let process = try ChildProcess(Command.path, arguments.map { Array($0.utf8) })
    usleep(milliseconds * 1000)
    process.send(SIGINT)
    let outcome = try process.wait()
    #expect([0, 128 + SIGINT].contains(outcome.status), "\(outcome.errors)")
    return outcome.status
  }

  @Test(arguments: milliseconds, ["backup", "salvage"])
  func `an interrupted copy leaves nothing`(delay: UInt32, command: String) throws {
    try manySegments(store)
    let status = try interrupt(command, store, directory("copy"), after: delay)
    if status != 0, directory.exists("copy") {
      // The signal came after the copy was complete.
      #expect(try cairn("verify", directory("copy")).status == 0)
    } else {
      #expect(directory.exists("copy") == (status == 0))
    }
  }

  @Test func `an interrupted salvage leaves the copy of another process alone`() throws {
    try manySegments(store)
    // The other copy appears while the command searches the store, at some of these times.
    try directory.makeDirectory("other")
    try directory.makeFile("other/seg-0000000000000001", [1])
    try directory.makeFile("other/UNFINISHED-COPY", [])
    for delay in 0..<30 as Range<UInt32> {
      let name = "copy \(delay)"
      let process = try ChildProcess(
        Command.path, ["salvage", store, directory(name)].map { Array($0.utf8) })
      usleep(delay * 1000)
      // This fails once the command has begun its own copy.
      let isOther = unsafe rename(directory("other"), directory(name)) == 0
      process.send(SIGINT)
      _ = try process.wait()
      if !isOther { return }
      #expect(directory.exists("\(name)/seg-0000000000000001"), "after \(delay) ms")
      try #require(unsafe rename(directory(name), directory("other")) == 0)
    }
  }

  @Test(arguments: milliseconds)
  func `an interrupted export leaves no part of a file`(delay: UInt32) throws {
    try manySegments(store)
    _ = try interrupt("export", store, directory("out"), after: delay)
    guard directory.exists("out") else { return }
    for name in try ChildProcess.run("/bin/ls", [Array(directory("out").utf8)]).lines {
      #expect(try directory.contents("out/" + name).count == 1_000_000)
    }
  }

  @Test(arguments: milliseconds)
  func `an interrupted import leaves a store that is closed`(delay: UInt32) throws {
    try directory.makeDirectory("tree")
    for number in 0..<1500 { try directory.makeFile("tree/\(number)", [1, 2, 3]) }
    _ = try interrupt("import", directory("tree"), store, after: delay)
    if directory.exists("store") {
      #expect(try cairn("stats", store, "--json").text.contains("\"clean\": true"))
    }
    #expect(try cairn("import", directory("tree"), store).status == 0)
    #expect(try cairn("keys", store).lines.count == 1500)
  }

  @Test(arguments: milliseconds)
  func `an interrupted compaction leaves a store that is closed and sound`(delay: UInt32) throws {
    try manySegments(store)
    let keys = stride(from: 0, to: 48, by: 3).map { "key \($0)" }
    try cairn(bytes: (["delete", store] + keys).map { Array($0.utf8) })
    _ = try interrupt("compact", store, after: delay)
    #expect(try cairn("stats", store, "--json").text.contains("\"clean\": true"))
    #expect(try cairn("verify", store).status == 0)
    #expect(try cairn("keys", store).lines.count == 32)
  }
}
