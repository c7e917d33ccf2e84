import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

/// Filesystems, containers and machines that give a store less than it could expect.
@Suite("Places where a store lives")
struct PlaceTests {
  private let clock = ManualClock()
  private var configuration: StoreConfiguration { .simulated(clock) }
  private func value(_ byteCount: Int) -> [UInt8] { [UInt8](repeating: 1, count: byteCount) }

  private func start(on disk: SimulatedDisk, announces: Bool = false) -> SimulatedProcess {
    let process = SimulatedProcess.start(on: disk, seed: 1)
    if announces { process.tellFollowers() }
    return process
  }

  /// A closed store of five entries. Its last page is half full.
  private func closedStore(announces: Bool = false) throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    let process = start(on: disk, announces: announces)
    let store = try process.open(configuration)
    for number in 0..<5 { try store.setValue(value(900), forKey: "\(number)") }
    try close(process)
    return disk
  }

  /// Closes the store and ends the process. The tests still hold the store, so it keeps its mappings.
  private func close(_ process: SimulatedProcess) throws {
    try process.store?.close()
    process.queue.runAll()
    process.kill()
  }

  // MARK: Shared blocks

  // Found on XFS: after `cp` of a closed store and with a full disk, the copy and the original ended
  // every command by SIGBUS. The simulated disk traps where that could happen.

  @Test("A store whose files share blocks with a copy is written to by calls first")
  func sharedBlocks() throws {
    let disk = try closedStore(announces: true)
    for name in disk.names(at: "/store") { disk.shareBlocks(of: "/store/\(name)") }
    let process = start(on: disk, announces: true)
    let store = try process.open(configuration)
    for number in 0..<50 { try store.setValue(value(100), forKey: "new \(number)") }
    #expect(try store.removeValue(forKey: "0"))
    #expect(try store.count() == 54)
    try close(process)
  }

  @Test("If the disk is full, opening or writing to such a store throws", arguments: [false, true])
  func sharedBlocksOnFullDisk(announces: Bool) throws {
    let disk = try closedStore(announces: announces)
    for name in disk.names(at: "/store") { disk.shareBlocks(of: "/store/\(name)") }
    disk.capacity = disk.allocatedByteCount
    let process = start(on: disk, announces: announces)
    let error = storeError {
      let store = try process.open(configuration)
      #expect(try store.count() == 5)
      try store.setValue("a", forKey: "b")
    }
    guard case .noSpace = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    disk.capacity = nil
    let store = try process.store ?? process.open(configuration)
    try store.setValue("a", forKey: "b")
    #expect(try store.count() == 6)
    try close(process)
  }

  @Test("A backup shares only whole pages with the segment being written to")
  func backup() throws {
    let disk = try closedStore()
    let process = start(on: disk)
    let store = try process.open(configuration)
    for number in 0..<20 {
      try store.setValue(value(100 + number), forKey: "new \(number)")
      try store.backup(to: "/backup")
      disk.setContents(nil, of: "/backup")
    }
    #expect(try store.count() == 25)
    try close(process)
  }

  // MARK: Refused calls

  @Test(
    "Calls that the kernel lacks or a sandbox refuses are done without",
    arguments: [1, 38] as [Int32])  // EPERM, ENOSYS
  func refusedCalls(number: Int32) throws {
    let disk = SimulatedDisk()
    var count = 0
    for round in 0..<4 {
      let process = start(on: disk, announces: true)
      var refused: Set<SimulatedFileSystem.Call> = []
      process.fileSystem.intervene = { call in
        guard [.copy, .exchange, .dropCache, .bootIdentifier].contains(call) else { return nil }
        refused.insert(call)
        // ENOENT, where `/proc` is hidden.
        return .fail(call == .bootIdentifier && round % 2 == 1 ? 2 : number)
      }
      let store = try process.open(configuration)
      #expect(try store.count() == count)
      for key in 0..<30 { try store.setValue(value(900), forKey: "\(round) \(key)") }
      count += 30
      try store.backup(to: "/backup \(round)")
      if round == 2 {
        try store.removeAll()
        count = 0
      }
      if round == 1 { try close(process) } else { process.kill() }
      #expect(refused.isSuperset(of: [.copy, .exchange, .bootIdentifier]))
      let checker = start(on: disk)
      checker.fileSystem.intervene = { $0 == .bootIdentifier ? .fail(number) : nil }
      let report = try Store.verify(path: "/store", environment: checker.environment)
      #expect(report.errors.isEmpty)
      checker.kill()
    }
  }

  @Test("If the process cannot read the boot's identifier, the error names the file")
  func unreadableBoot() throws {
    let process = start(on: try closedStore())
    process.fileSystem.intervene = { $0 == .bootIdentifier ? .fail(SystemError.noMemory) : nil }
    let error = storeError { _ = try process.open(configuration) }
    guard case .system(let failure) = error else {
      return #expect(Bool(false), "\(String(describing: error))")
    }
    #expect(failure.path == "/proc/sys/kernel/random/boot_id")
    #expect(failure.errorNumber == SystemError.noMemory)
    process.kill()
  }

  // MARK: Versions

  /// The disk keeps nothing that was not synced.
  private struct Oldest: CutChooser {
    mutating func version(of count: Int) -> Int { 0 }
    mutating func tearsSector() -> Bool { false }
    mutating func keepsOldWord() -> Bool { true }
    mutating func length(of count: Int) -> Int { 0 }
    mutating func persistsName() -> Bool { false }
    mutating func fillsUnwritten() -> Bool { false }
    mutating func junk(of count: Int) -> Int { 0 }
    mutating func isHostile() -> Bool { false }
  }

  @Test(
    "A version that a power cut took is never given to another value", arguments: [false, true])
  func versions(isClosed: Bool) throws {
    // Found with real power cuts: a client's ETag of a lost value matched another value.
    var disk = try closedStore()
    var given: Set<UInt64> = []
    for round in 0..<4 {
      let process = start(on: disk)
      let store = try process.open(configuration)
      // Nothing but the clean state before the session is left each time, or a durable record.
      if !isClosed { try store.setValue("durable", forKey: "d", durability: .durable) }
      for number in 0..<10 {
        let version = try store.setValue("\(round)", forKey: "\(number)")
        #expect(given.insert(version).inserted)
      }
      if round == 2 {
        try store.removeAll()
        #expect(try given.insert(store.setValue("again", forKey: "0")).inserted)
        // A version from the time after a removal that the power cut undoes.
        var isExchanged = false
        process.fileSystem.intervene = { call in
          if call == .exchange || call == .rename { isExchanged = true }
          guard call == .synchronize, isExchanged else { return nil }
          isExchanged = false
          do {
            #expect(try given.insert(store.setValue("undone", forKey: "0")).inserted)
          } catch { Issue.record("\(error)") }
          return .die
        }
        try? store.removeAll()
      }
      process.kill()
      var cut = Oldest()
      disk = disk.afterPowerCut(&cut)
    }
  }

  @Test("After a close without a restart, versions do not jump")
  func noJump() throws {
    let disk = try closedStore()
    for _ in 0..<2 {
      let process = start(on: disk)
      let store = try process.open(configuration)
      #expect(try store.setValue("a", forKey: "b") < 100)
      try close(process)
    }
  }

  // MARK: Clocks

  /// A clock that also knows the time elapsed, like the system's.
  private final class SettableClock: WallClock {
    private let milliseconds = Mutex(ManualClock.start.millisecondsSinceEpoch)
    func now() -> Timestamp { Timestamp(millisecondsSinceEpoch: milliseconds.withLock { $0 }) }
    func elapsed() -> Duration? { .zero }
    func set(_ time: Timestamp) { milliseconds.withLock { $0 = time.millisecondsSinceEpoch } }
  }

  @Test(
    "After a time with the clock ahead, entries are written in the present",
    arguments: [false, true])
  func clockAhead(isReopened: Bool) throws {
    let clock = SettableClock()
    var configuration = configuration
    configuration.clock = clock
    let (present, future) = (clock.now(), clock.now().advanced(by: .seconds(2 * 86_400)))
    let disk = SimulatedDisk()
    var process = start(on: disk)
    if isReopened { clock.set(future) }
    var store = try process.open(configuration)
    clock.set(future)
    // More than one segment.
    for number in 0..<100 { try store.setValue(value(900), forKey: "old \(number)") }
    if isReopened {
      try close(process)
      clock.set(present)
      process = start(on: disk)
      store = try process.open(configuration)
    }
    clock.set(present)
    try store.setValue("a", forKey: "b")
    #expect(try store.info(forKey: "b")?.written == present)
    clock.set(present.advanced(by: .seconds(10)))
    _ = try store.trim(.older(than: .seconds(5)))
    #expect(try store.value(forKey: "b") == nil)
    try close(process)
  }

  // MARK: Files

  @Test(
    "Where no file can be added, a full store can be emptied and written again",
    arguments: [(40, false), (40, true), (200, false), (200, true)])
  func noInodes(count: Int, isKilled: Bool) throws {
    let disk = SimulatedDisk()
    var process = start(on: disk)
    var store = try process.open(configuration)
    try store.setValue("kept", forKey: "kept")
    for number in 0..<count { try store.setValue(value(2000), forKey: "\(number)") }
    process.queue.runAll()
    if isKilled { process.kill() } else { try close(process) }
    disk.fileLimit = disk.fileCount
    for round in 0..<3 {
      process = start(on: disk)
      store = try process.open(configuration)
      var number = round == 0 ? count : 0
      let error = storeError {
        while true {
          try store.setValue(value(2000), forKey: "\(number)")
          number += 1
        }
      }
      #expect(error.map { "\($0)" }?.contains("no room for another file") == true)
      for key in 0..<number { #expect(try store.removeValue(forKey: "\(key)")) }
      for key in 0..<5 { try store.setValue("new", forKey: "\(key)") }
      #expect(try store.count() == 6)
      for key in 0..<5 { #expect(try store.removeValue(forKey: "\(key)")) }
      if isKilled { process.kill() } else { try close(process) }
    }
  }
}
