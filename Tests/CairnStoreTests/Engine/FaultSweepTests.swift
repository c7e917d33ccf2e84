import CairnRepair
import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

/// The system calls of a store are made to fail, one at a time.
@Suite("Failing system calls")
struct FaultSweepTests {
  /// A value of one repeated byte, like all values here, which is quick to compare.
  struct Filled: Hashable {
    var byte: UInt8
    var count: Int

    var bytes: [UInt8] { [UInt8](repeating: byte, count: count) }

    /// `nil` if the bytes are not all the same.
    init?(_ bytes: [UInt8]) {
      guard let first = bytes.first else { return nil }
      let span = bytes.rawSpan
      let last = span.byteCount - 1
      guard span.extracting(0..<last).equals(span.extracting(1..<(last + 1))) else { return nil }
      byte = first
      count = bytes.count
    }

    init(byte: Int, count: Int) {
      self.byte = UInt8(truncatingIfNeeded: byte)
      self.count = count
    }
  }

  /// What each key may have after the writes so far, some of which may have failed.
  struct Ledger {
    var allowed: [String: Set<Filled?>] = [:]
    var faults: [String] = []

    /// Records a write of some keys that returned or threw.
    mutating func note(_ changes: [String: Filled?], _ write: () throws -> Void) {
      do {
        try write()
        for (key, value) in changes { allowed[key] = [value] }
      } catch is StoreError {
        for (key, value) in changes { allowed[key, default: [nil]].insert(value) }
      } catch {
        faults.append("\(error) is not an error of the store")
      }
    }

    mutating func noteRemoveAll(_ store: Store) {
      note(Dictionary(uniqueKeysWithValues: allowed.keys.map { ($0, nil) })) {
        try store.removeAll()
      }
    }

    private func isAllowed(_ value: [UInt8]?, for key: String) -> Bool {
      let values = allowed[key] ?? []
      guard let value else { return values.contains(nil) }
      guard let filled = Filled(value) else { return false }
      return values.contains(filled)
    }

    /// Checks what a store returns. If `mayFail`, a read may throw an error of the store.
    mutating func check(_ store: Store, mayFail: Bool) {
      for key in allowed.keys {
        do {
          let value = try store.value(forKey: key)
          if !isAllowed(value, for: key) {
            faults.append("\(key) has another value: \(value?.count ?? -1)")
          }
        } catch {
          if !mayFail { faults.append("\(key): \(error)") }
        }
      }
      if mayFail { return }
      do {
        for (key, value) in try store.contents() where !isAllowed(value, for: key) {
          faults.append("\(key) should not be there")
        }
      } catch {
        faults.append("iteration: \(error)")
      }
    }
  }

  struct Run {
    var faults: [String] = []
    var counts: [FaultyFileSystem.Call: Int] = [:]
    var hasFired = false
  }

  /// A fixed workload on one file system, then a healthy open that must find every acknowledged
  /// write.
  static func run(
    _ system: FaultyFileSystem, mapsFiles: Bool = true,
    arming fault: FaultyFileSystem.Fault? = nil
  ) throws -> Run {
    let directory = try TemporaryDirectory()
    let configuration = StoreConfiguration.small { $0.mapsFiles = mapsFiles }
    var ledger = Ledger()
    let queue = ManualBackgroundQueue()
    if let fault { system.arm(fault) }
    // Twice, so that opening an existing store is tested too.
    for round in 0..<2 {
      guard
        let store = try? Store(
          directory.store, configuration, fileSystem: system, background: queue)
      else { continue }
      work(store, round: round, ledger: &ledger, queue: queue)
      ledger.check(store, mayFail: true)
      _ = try? store.backup(to: directory("backup \(round)"))
      try? store.close()
      queue.runAll()
    }
    queue.discardAll()
    var run = Run()
    run.counts = system.counts
    run.hasFired = system.hasFired
    system.awaitClosing()
    run.faults = ledger.faults + system.mistakes
    if system.openDescriptorCount != 0 {
      run.faults.append("\(system.openDescriptorCount) descriptors are left open")
    }
    if system.mappingCount != 0 { run.faults.append("\(system.mappingCount) mappings are left") }
    do {
      // Through mappings, which are faster.
      let healthy = try Store(directory.store)
      ledger.faults = []
      ledger.check(healthy, mayFail: false)
      try healthy.setValue("after", forKey: "after")
      try healthy.close()
      let report = try Store.verify(path: directory.store)
      run.faults += ledger.faults + report.errors.map { "verify: \($0)" }
      let recovery = try Store(directory.store, readOnly: true).statistics().recovery
      run.faults += recovery.damage.map { "damaged: \($0)" }
      // A backup is a store or nothing.
      for round in 0..<2 {
        let path = directory("backup \(round)")
        guard let image = try? Image(of: path), image.files["MANIFEST"] != nil else { continue }
        run.faults += try Store.verify(path: path).errors.map { "backup: \($0)" }
        _ = try Store(path, readOnly: true).count()
      }
    } catch {
      run.faults.append("healthy opening: \(error)")
    }
    return run
  }

  private static func work(
    _ store: Store, round: Int, ledger: inout Ledger, queue: ManualBackgroundQueue
  ) {
    func filled(_ count: Int, _ seed: Int) -> Filled { Filled(byte: seed + round, count: count) }
    for number in 0..<3 {
      let durability: Durability = [.process, .durable, .interval(.seconds(1))][number]
      let value = filled(50, number)
      ledger.note(["small\(number)": value]) {
        try store.setValue(value.bytes, forKey: "small\(number)", durability: durability)
      }
      queue.runAll()
    }
    for durability in [Durability.process, .durable] {
      let value = filled(60, 10)
      ledger.note(["small0": value, "batch": value, "small1": nil]) {
        try store.write(durability: durability) { batch in
          try batch.setValue(value.bytes, forKey: "small0")
          try batch.setValue(value.bytes, forKey: "batch")
          try batch.removeValue(forKey: "small1")
        }
      }
    }
    // Enough for two rolls, one of them without a ready segment; later enough for one.
    for number in 0..<(round == 0 ? 10 : 5) {
      let value = filled(14_000, number)
      ledger.note(["medium\(number)": value]) {
        try store.setValue(
          value.bytes, forKey: "medium\(number)", durability: number % 4 == 3 ? .durable : .process)
      }
      if number > 5 { queue.runAll() }
    }
    for (number, durability) in [Durability.process, .durable].enumerated() where round == 0 {
      let large = filled(90_000, number)
      ledger.note(["large\(number)": large]) {
        try store.setValue(large.bytes, forKey: "large\(number)", durability: durability)
      }
    }
    ledger.note(["small2": nil]) { try store.removeValue(forKey: "small2", durability: .durable) }
    queue.runAll()
    if round == 0 {
      ledger.noteRemoveAll(store)
      let value = filled(70, 3)
      ledger.note(["small0": value]) { try store.setValue(value.bytes, forKey: "small0") }
    }
    ledger.note([:]) { try store.sync() }
    queue.runAll()
  }

  static let errors: [Int32] = [EIO, ENOSPC, EDQUOT, EINTR, EMFILE, ENOMEM, EROFS]

  /// The errors to try at a call site: all of them if `CAIRN_TEST_ALL_ERRORS` is set, which takes
  /// minutes; else each in turn. `FaultFuzzer --sweep` tries all of them.
  static func errors(at index: Int) -> [Int32] {
    testsAll ? errors : [errors[index % errors.count]]
  }

  static let testsAll = ProcessInfo.processInfo.environment["CAIRN_TEST_ALL_ERRORS"] != nil

  @Test(
    "Without a failure, the workload does everything it should",
    arguments: [true, false])
  func healthy(mapsFiles: Bool) throws {
    let run = try Self.run(FaultyFileSystem(), mapsFiles: mapsFiles)
    #expect(run.faults == [])
    for call in FaultyFileSystem.Call.allCases
    where ![.makeDirectory, .openDirectory, .dropCache].contains(call) {
      if !mapsFiles, [.map, .protect, .prefault, .unmapPages].contains(call) {
        continue
      }
      #expect((run.counts[call] ?? 0) > 0, "\(call) is not called")
    }
  }

  @Test(
    "Any single failing call is a typed error, loses nothing acknowledged, and leaks nothing",
    arguments: FaultyFileSystem.Call.failing)
  func sweep(call: FaultyFileSystem.Call) throws {
    let count = try Self.run(FaultyFileSystem()).counts[call] ?? 0
    var reported = 0
    // About ten calls, unless all are wanted.
    var generator = Seed.generator("\(#function)\(call)")
    let step = Self.testsAll ? 1 : max(1, count / 10)
    for index in stride(from: Int.random(in: 0..<step, using: &generator), to: count, by: step) {
      for number in Self.errors(at: index) {
        let fault = FaultyFileSystem.Fault(call: call, index: index, errorNumber: number)
        let run = try Self.run(FaultyFileSystem(), arming: fault)
        #expect(run.hasFired)
        if !run.faults.isEmpty {
          Issue.record("\(fault) of \(count): \(run.faults.prefix(3))")
          reported += 1
          if reported > 3 { return }
        }
      }
    }
  }

  @Test(
    "A single failing call does no harm with records read and written by system calls",
    arguments: FaultyFileSystem.Call.failing)
  func sweepSystemCalls(call: FaultyFileSystem.Call) throws {
    let count = try Self.run(FaultyFileSystem(), mapsFiles: false).counts[call] ?? 0
    var reported = 0
    for index in stride(from: 0, to: count, by: max(1, count / 4)) {
      let fault = FaultyFileSystem.Fault(
        call: call, index: index, errorNumber: Self.errors[index % Self.errors.count])
      let run = try Self.run(FaultyFileSystem(), mapsFiles: false, arming: fault)
      if !run.faults.isEmpty {
        Issue.record("\(fault) of \(count): \(run.faults.prefix(3))")
        reported += 1
        if reported > 3 { return }
      }
    }
  }

  @Test(
    "A call that fails forever from some point on does no further harm",
    arguments: FaultyFileSystem.Call.failing)
  func lasting(call: FaultyFileSystem.Call) throws {
    let count = try Self.run(FaultyFileSystem()).counts[call] ?? 0
    var reported = 0
    for index in stride(from: 0, to: count, by: max(1, count / 4)) {
      for number in [EIO, ENOSPC] {
        let fault = FaultyFileSystem.Fault(
          call: call, index: index, errorNumber: number, isLasting: true)
        let run = try Self.run(FaultyFileSystem(), arming: fault)
        if !run.faults.isEmpty {
          Issue.record("lasting \(fault) of \(count): \(run.faults.prefix(3))")
          reported += 1
          if reported > 3 { return }
        }
      }
    }
  }

  @Test(
    "A call that takes effect and then reports a failure does no further harm",
    arguments: [
      FaultyFileSystem.Call.rename, .exchange, .unlink, .write, .allocate, .truncate,
      .synchronize, .synchronizeData,
    ])
  func afterEffect(call: FaultyFileSystem.Call) throws {
    let count = try Self.run(FaultyFileSystem()).counts[call] ?? 0
    var reported = 0
    for index in stride(from: 0, to: count, by: max(1, count / 10)) {
      let fault = FaultyFileSystem.Fault(
        call: call, index: index, errorNumber: EIO, takesEffect: true)
      let run = try Self.run(FaultyFileSystem(), arming: fault)
      if !run.faults.isEmpty {
        Issue.record("\(fault) of \(count), which took effect: \(run.faults.prefix(3))")
        reported += 1
        if reported > 3 { return }
      }
    }
  }

  @Test(
    "Short reads and writes change nothing", arguments: [1, 7, 4096],
    [true, false])
  func shortTransfers(limit: Int, mapsFiles: Bool) throws {
    // One byte at a time would take minutes for the whole workload.
    if limit == 1 {
      let directory = try TemporaryDirectory()
      let configuration = StoreConfiguration.small { $0.mapsFiles = mapsFiles }
      let expected: [String: [UInt8]]
      do {
        let store = try Store(
          directory.store, configuration, fileSystem: FaultyFileSystem(transferLimit: 1))
        try store.setValue("value", forKey: "key", durability: .durable)
        try store.write { try $0.setValue("other", forKey: "batch") }
        expected = try store.contents()
        try store.close()
      }
      #expect(try Store(directory.store, configuration).contents() == expected)
    } else {
      let run = try Self.run(FaultyFileSystem(transferLimit: limit), mapsFiles: mapsFiles)
      #expect(run.faults == [])
    }
  }

  @Test("A batch whose log was written is seen whole, whatever fails then")
  func batchAfterAppend() throws {
    let directory = try TemporaryDirectory()
    let system = FaultyFileSystem()
    let store = try Store(
      directory.store, .small { $0.mapsFiles = false }, fileSystem: system)
    try store.setValue("old", forKey: "a")
    try store.setValue("old", forKey: "b")
    // The old record of one key or the other cannot be read.
    var failureCount = 0
    for index in 0..<8 {
      system.arm(.init(call: .read, index: index, errorNumber: EIO))
      try store.write { batch in
        try batch.setValue("new\(index)", forKey: "a")
        try batch.setValue("new\(index)", forKey: "b")
      }
      if system.hasFired { failureCount += 1 }
      system.arm(nil)
      try Image(of: directory.store).write(to: directory("killed \(index)"))
      for store in [store, try Store(directory("killed \(index)"))] {
        #expect(try store.text("a") == "new\(index)", "read \(index) failed")
        #expect(try store.text("b") == "new\(index)", "read \(index) failed")
      }
    }
    #expect(failureCount >= 2)
  }

  @Test(
    "A failed roll leaves a log that the next open accepts, closed or killed",
    arguments: 0..<4, [true, false])
  func failedRoll(index: Int, closed: Bool) throws {
    let directory = try TemporaryDirectory()
    let system = FaultyFileSystem()
    let queue = ManualBackgroundQueue()
    let store = try Store(
      directory.store, .small { $0.mapsFiles = false }, fileSystem: system, background: queue)
    let value = [UInt8](repeating: 1, count: 1000)
    // Until only one more record fits. The next segment is ready.
    for number in 0..<62 { try store.setValue(value, forKey: "key\(number)") }
    queue.runAll()
    system.arm(.init(call: .write, index: index, errorNumber: EIO))
    var acknowledged = 62
    for _ in 0..<10 {
      if storeError({ try store.setValue(value, forKey: "key\(acknowledged)") }) == nil {
        acknowledged += 1
      }
    }
    #expect(system.hasFired)
    if closed { try? store.close() }
    try Image(of: directory.store).write(to: directory("copy"))
    let error = storeError {
      let again = try Store(directory("copy"))
      for number in 0..<acknowledged {
        let found = try again.value(forKey: "key\(number)")
        #expect(found == value)
      }
      let quarantined = try again.statistics().recovery.quarantinedFiles
      #expect(quarantined == [])
    }
    #expect(error == nil)
    queue.discardAll()
  }

  @Test("A failure to end a resumed segment leaves a store that continues and survives a kill")
  func failedRollOfResumed() throws {
    // The roll record has no room in a resumed segment. If the next segment counted as active
    // anyway, a later clean close would list a log with a gap.
    let scene = try StoreScene()
    let first = try scene.open()
    for index in 0..<160 { try first.setValue([UInt8].filled(300), forKey: "key\(index)") }
    try first.close()
    let store = try scene.open()
    let isFull = Mutex(true)
    scene.fileSystem.setHook { event in
      guard event.call == .allocate, event.file == StoreScene.segment else { return nil }
      return isFull.withLock { $0 } ? ENOSPC : nil
    }
    #expect(throws: StoreError.self) { try store.setValue([UInt8].filled(30_000), forKey: "m") }
    isFull.withLock { $0 = false }
    try store.setValue([UInt8].filled(30_000), forKey: "m", durability: .durable)
    try store.setValue("z", forKey: "z", durability: .durable)

    let again = try scene.killed().open(readOnly: true)
    #expect(try again.value(forKey: "m") == [UInt8].filled(30_000))
    #expect(try again.count() == 162)
    try store.close()
    #expect(try Store.verify(path: scene.path).errors == [])
  }

  @Test("A segment that cannot be created leaves no file")
  func unmadeSegment() throws {
    let directory = try TemporaryDirectory()
    let system = FaultyFileSystem()
    let store = try Store(directory.store, fileSystem: system)
    system.arm(.init(call: .allocate, index: 0, errorNumber: ENOSPC, isLasting: true))
    guard
      case .noSpace = storeError({
        try store.setValue([UInt8](repeating: 1, count: 1_000_000), forKey: "key")
      })
    else {
      Issue.record("no error")
      return
    }
    #expect(try Image(of: directory.store).segmentNames == [])
    system.arm(nil)
    try store.setValue("v", forKey: "key")
    try store.close()
    #expect(try Store(directory.store).value(forKey: "key") == Array("v".utf8))
  }
}
