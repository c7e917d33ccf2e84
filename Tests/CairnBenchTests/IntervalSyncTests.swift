import Dispatch
import Testing

@testable import CairnBench

@Suite("Syncing at intervals")
struct IntervalSyncTests {
  @Test("continues until its end, and no longer")
  func repeated() throws {
    let synced = DispatchSemaphore(value: 0)
    let sync = IntervalSync(every: .milliseconds(1)) { synced.signal() }
    for _ in 0..<3 { synced.wait() }
    try sync.end()
    while synced.wait(timeout: .now()) == .success {}
    #expect(synced.wait(timeout: .now()) == .timedOut)
  }

  @Test("ends with the first failed sync, and reports it")
  func failing() {
    let tried = DispatchSemaphore(value: 0)
    let sync = IntervalSync(every: .milliseconds(1)) {
      tried.signal()
      throw BenchFailure.unsuited("no sync")
    }
    tried.wait()
    let error = #expect(throws: BenchFailure.self) { try sync.end() }
    #expect(error.map { "\($0)" } == "no sync")
    #expect(tried.wait(timeout: .now()) == .timedOut)
  }

  @Test("ends at once, whatever is left of the interval")
  func endWithoutSync() throws {
    let sync = IntervalSync(every: .seconds(3600)) { Issue.record("an hour has not passed") }
    try sync.end()
  }
}
