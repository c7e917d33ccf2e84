import CairnLibC
import CairnStore
import FuzzSupport
import Testing

@Suite("The log of reports that no call throws")
struct DiagnosticLogTests {
  @Test("A handler is called from its lowest level up; for lower levels, no text is made")
  func levels() {
    let levels: [DiagnosticLog.Level] = [.debug, .info, .warning, .error]
    #expect(DiagnosticLog.Level.allCases == levels)
    for lowest in levels {
      let told = Collected<DiagnosticLog.Message>()
      let made = Messages()
      let log = DiagnosticLog(from: lowest) { told.add($0) }
      func text(_ level: DiagnosticLog.Level) -> String {
        made.add(level.rawValue)
        return "of \(level)"
      }
      for level in levels { log(level, .clock, path: "/a", text(level)) }
      let expected = levels.filter { $0.severity >= lowest.severity }
      #expect(told.all.map(\.level) == expected)
      #expect(made.all == expected.map(\.rawValue))
      #expect(told.all.last?.text == "of error")
      #expect(told.all.last?.category == "clock" && told.all.last?.path == "/a")
    }
    DiagnosticLog.silent(.error, .damage, path: "/a", { fatalError("it was made") }())
  }

  @Test("A message is one line and contains its path once")
  func line() {
    func line(_ path: String, _ text: String) -> String? {
      let told = Messages()
      DiagnosticLog { told.add("\($0)") }(.error, .damage, path: path, text)
      return told.all.first
    }
    #expect(line("/a", "gone") == "error: damage: /a: gone")
    #expect(line("/a", "/a: gone") == "error: damage: /a: gone")
    #expect(line("/a\nb", #"/a\x0Ab: gone"#) == #"error: damage: /a\x0Ab: gone"#)
    #expect(line("/a\nb", "two\nlines") == #"error: damage: /a\x0Ab: two\x0Alines"#)
  }

  @Test("By default, warnings and errors are lines on standard error, and .none writes nothing")
  func standardError() async throws {
    let result = await #expect(
      processExitsWith: .success, observing: [\.standardErrorContent, \.standardOutputContent]
    ) {
      let log = StoreConfiguration().log
      log(.debug, .recovery, path: "/a", "one")
      log(.info, .recovery, path: "/a", "two")
      log(.warning, .recovery, path: "/a", "three")
      log(.error, .writing, path: "/a", "four")
      DiagnosticLog.silent(.error, .writing, path: "/a", "five")
    }
    let lines = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
      .split(separator: "\n").filter { $0.hasPrefix("cairn") || $0.contains("/a") }
    #expect(
      lines == ["cairn: warning: recovery: /a: three", "cairn: error: writing: /a: four"])
    let output = String(decoding: try #require(result).standardOutputContent, as: UTF8.self)
    #expect(!output.contains("/a"))
  }

  @Test("A store that is never closed logs the error that its close would have thrown")
  func unclosed() throws {
    let directory = try TemporaryDirectory()
    let system = FaultyFileSystem()
    let told = Collected<DiagnosticLog.Message>()
    var store: Store? = try Store(
      directory.store, .small { $0.log = DiagnosticLog { told.add($0) } }, fileSystem: system)
    try store?.setValue("the value", forKey: "the key")
    system.setHook { $0.call == .synchronizeData ? EIO : nil }
    store = nil
    system.setHook(nil)
    let closing = told.all.filter { $0.text.hasPrefix("closing: ") }
    #expect(closing.map(\.level) == [.error])
    #expect(closing.map(\.path) == [directory.store])
    #expect(told.all.allSatisfy { !$0.text.contains("the key") && !$0.text.contains("the value") })
  }
}
