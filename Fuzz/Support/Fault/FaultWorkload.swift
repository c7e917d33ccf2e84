internal import CairnStore

/// The steps of a run with faults, fixed in advance so that every run makes the same calls up to
/// the fault.
package struct FaultWorkload: Sendable {
  package enum Step: Sendable {
    case operation(Operation)
    /// The process dies, and the store is reopened.
    case kill
    /// The process dies, a segment appears that no manifest lists, and the store is reopened.
    case strayFile
    /// The process dies, and the store is opened for reading and read.
    case readOnly
    /// The store is closed and every byte checked.
    case verify
    /// The store is closed and salvaged.
    case salvage

    package var name: String {
      switch self {
      case .operation(let operation): operation.name
      case .kill: "a kill and an open"
      case .strayFile: "a kill, a stray file and an open"
      case .readOnly: "a read-only opening"
      case .verify: "a check of all bytes"
      case .salvage: "a salvage"
      }
    }
  }

  package var steps: [Step]
  package var mapsFiles: Bool = true
  package var reservesBlocks = true
  package var exchanges = true
  package var sectorByteCount = 512
  /// If set, no entry has a lifetime.
  package var countLimit: Int?

  package init(steps: [Step], mapsFiles: Bool = true) {
    self.steps = steps
    self.mapsFiles = mapsFiles
  }

  // MARK: The scripted one

  /// Covers everything that a store does.
  package static func scripted(mapsFiles: Bool = true) -> FaultWorkload {
    var script = Script()
    // Every kind of write. The first begins a session.
    script.put(0, 40, .process)
    script.put(1, 50, .durable)
    script.put(2, 60, .interval(.milliseconds(50)))
    script.attributes(3, .process)
    script.add(.setLifetime(key: script.key(3), .seconds(6), .process))
    script.add(.setLifetime(key: script.key(3), .seconds(8), .durable))
    script.batch([(0, 70), (4, 80), (1, nil)], .process)
    script.batch([(0, 75), (5, 30), (4, nil)], .durable)
    script.add(.wait(.milliseconds(60)))
    script.compareAndSet(0, 45, isRight: true, .durable)
    script.compareAndSet(0, 45, isRight: false, .process)
    script.add(.remove(key: script.key(3), .process))
    script.add(.remove(key: script.key(5), .durable))
    // The first roll finds the next segment ready, the second does not.
    script.put(4, 34_000, .process)
    script.add(.runJobs)
    script.put(5, 30_000, .process)
    script.put(6, 40_000, .durable)
    script.put(7, 40_000, .process)
    script.add(.runJobs)
    // Values that get their own segments.
    script.put(8, 70_000, .process)
    script.put(6, 66_000, .durable)
    script.add(.remove(key: script.key(8), .durable))
    script.add(.sync)
    script.add(.get(key: script.key(6)))
    script.add(.compact)
    script.add(.runJobs)
    script.add(.reopen)
    // Continues in the segment that the close left open.
    script.put(1, 100, .process)
    script.add(.wait(.milliseconds(5000)))
    script.put(2, 90, .durable)
    // A sync that fails in the recovery may leave any part of these records.
    for (key, byteCount) in [(3, 700), (4, 1500), (5, 600), (0, 900)] {
      script.put(key, byteCount, .process)
    }
    script.steps.append(.kill)
    script.put(3, 80, .process)
    script.add(.remove(key: script.key(4), .process))
    script.add(.compact)
    script.put(2, 95, .process)
    script.add(.compact)
    script.steps.append(.strayFile)
    script.put(3, 85, .process)
    script.steps.append(.readOnly)
    script.put(0, 20_000, .process)
    script.add(.removeAll)
    // A compaction whose only input must be sealed first: two segments, in one sync.
    script.put(4, 34_000, .process)
    script.put(5, 34_000, .process)
    script.put(6, 34_000, .process)
    script.add(.compact)
    script.add(.removeAll)
    script.put(1, 55, .durable)
    script.batch([(2, 50), (3, 60)], .interval(.milliseconds(50)))
    script.steps.append(.verify)
    script.add(.backup(to: "/backup"))
    script.put(7, 3000, .process)
    script.steps.append(.salvage)
    script.put(4, 50, .process)
    script.add(.wait(.milliseconds(100)))
    script.put(5, 500, .durable)
    return FaultWorkload(steps: script.steps, mapsFiles: mapsFiles)
  }

  /// Covers everything that goes through lists of entries, and everything that holds an earlier
  /// state of the store while other calls continue.
  package static func lists(mapsFiles: Bool = true) -> FaultWorkload {
    var script = Script()
    for (number, byteCount) in [(0, 40), (1, 700), (2, 60), (3, 1500), (4, 80)] {
      script.put(number, byteCount, .process)
    }
    script.attributes(5, .process)
    script.add(.checkpoint)
    script.add(.snapshot)
    // A snapshot is held while its entries are overwritten, removed, and dropped from the log.
    script.batch([(0, 75), (6, 40), (1, nil)], .process)
    script.add(.get(key: script.key(2)))
    script.add(.trim(toCount: 5, .process))
    script.add(.compact)
    script.add(.backup(to: "/backup-1"))
    script.add(.snapshot)
    script.put(3, 900, .process)
    script.add(.trim(toCount: 4, .durable))
    // A snapshot is also held while the store is closed.
    script.add(.reopen)
    script.add(.snapshot)
    script.put(1, 300, .process)
    script.attributes(7, .process)
    script.add(.wait(.seconds(5)))
    script.add(.removeExpired(.durable))
    script.add(.checkpoint)
    script.put(2, 50, .process)
    script.steps.append(.kill)
    script.add(.trim(toCount: 2, .process))
    // Several segments. The last one has a live record.
    script.put(8, 66_000, .process)
    script.put(3, 45, .process)
    script.add(.backup(to: "/backup-2"))
    return FaultWorkload(steps: script.steps, mapsFiles: mapsFiles)
  }

  /// Covers the effects of a limit.
  package static func evictions() -> FaultWorkload {
    var script = Script()
    for number in 0..<5 { script.put(number, 100 * (number + 1), .process) }
    script.add(.get(key: script.key(2)))
    script.put(5, 40, .durable)
    script.batch([(6, 60), (0, 50), (7, 45), (4, nil)], .process)
    script.add(.compact)
    script.steps.append(.kill)
    script.put(1, 34_000, .process)
    script.put(2, 34_000, .process)
    script.add(.remove(key: script.key(1), .durable))
    script.put(3, 55, .process)
    script.add(.reopen)
    script.compareAndSet(4, 65, isRight: true, .durable)
    var workload = FaultWorkload(steps: script.steps)
    workload.countLimit = 3
    return workload
  }

  private struct Script {
    var steps: [Step] = []
    private var valueCount = 0

    func key(_ number: Int) -> [UInt8] { OperationGenerator.keys[number] }

    mutating func add(_ operation: Operation) { steps.append(.operation(operation)) }

    private mutating func entry(_ byteCount: Int) -> ModelEntry {
      valueCount += 1
      var random = FuzzRandom(seed: UInt64(valueCount))
      return ModelEntry(value: random.bytes(count: byteCount))
    }

    mutating func put(_ number: Int, _ byteCount: Int, _ durability: Durability) {
      add(.put(key: key(number), entry(byteCount), durability))
    }

    /// Puts a value with every attribute that one may have.
    mutating func attributes(_ number: Int, _ durability: Durability) {
      var entry = entry(44)
      entry.metadata = Array("metadata".utf8)
      entry.cost = 7
      entry.expires = ManualClock.start.advanced(by: .seconds(4))
      add(.put(key: key(number), entry, durability))
    }

    mutating func batch(_ changes: [(Int, Int?)], _ durability: Durability) {
      var list: [Operation.Change] = []
      for (number, byteCount) in changes { list.append((key(number), byteCount.map { entry($0) })) }
      add(.batch(list, durability))
    }

    mutating func compareAndSet(
      _ number: Int, _ byteCount: Int, isRight: Bool, _ durability: Durability
    ) {
      add(.compareAndSet(key: key(number), entry(byteCount), isRight: isRight, durability))
    }
  }

  // MARK: Random ones

  package static func random(
    _ choices: inout some ChoiceSource, operationCount: Int
  ) -> FaultWorkload {
    var generator = OperationGenerator()
    let countLimit = choices.once(in: 4) ? 2 + choices.below(8) : nil
    generator.mayExpire = countLimit == nil
    var now = ManualClock.start
    var steps: [Step] = []
    for _ in 0..<operationCount {
      if choices.once(in: 20) {
        steps.append(choices.element(of: [.kill, .kill, .strayFile, .readOnly, .verify, .salvage]))
        continue
      }
      let operation = generator.next(&choices, now: now)
      if case .wait(let duration) = operation { now = now.advanced(by: duration) }
      steps.append(.operation(operation))
    }
    var workload = FaultWorkload(steps: steps)
    workload.countLimit = countLimit
    workload.mapsFiles = !choices.once(in: 3)
    workload.reservesBlocks = !choices.once(in: 5)
    workload.exchanges = !choices.once(in: 4)
    workload.sectorByteCount = choices.once(in: 3) ? 4096 : 512
    return workload
  }
}
