import CairnStore
import FuzzSupport
import Testing

@Suite("Mistakes in the calls that make things durable")
struct MistakenFileSystemTests {
  /// A call, and its purpose.
  private struct Call: Hashable {
    var call: SimulatedFileSystem.Call
    var path: String?
  }

  /// The calls of a session, of one that is killed, of the recovery, and of one with a failed sync.
  private func calls(_ mistake: FileMistake?) throws -> [Call] {
    let disk = SimulatedDisk()
    let clock = ManualClock()
    var calls: [Call] = []
    func run(failing: Bool = false, _ body: (SimulatedProcess, Store) throws -> Void) throws {
      let process = SimulatedProcess.start(on: disk, seed: 1, mistake: mistake)
      let fileSystem = process.fileSystem
      var isFailing = false
      fileSystem.intervene = { [unowned fileSystem] call in
        calls.append(Call(call: call, path: fileSystem.currentPath))
        guard isFailing, call == .synchronizeData else { return nil }
        isFailing = false
        return .fail(5)
      }
      let store = try process.open(.simulated(clock))
      isFailing = failing
      try body(process, store)
      process.kill()
    }
    func put(_ store: Store) throws {
      try store.setValue("value", forKey: "key", durability: .durable)
    }
    try run { process, store in
      try put(store)
      try store.removeAll()
      try put(store)
      // Enough for a checkpoint.
      for number in 0..<40 {
        try store.setValue(Array(repeating: 7, count: 4000), forKey: "\(number)")
      }
      process.queue.runAll()
      try store.close()
    }
    try run { _, store in try put(store) }
    try run(failing: true) { _, store in try? put(store) }
    return calls
  }

  @Test("A mistake changes the calls", arguments: FileMistake.allCases)
  func changes(mistake: FileMistake) throws {
    #expect(try calls(mistake) != calls(nil))
  }

  @Test("Without a mistake, the calls are the same every time")
  func same() throws {
    #expect(try calls(nil) == calls(nil))
  }
}
