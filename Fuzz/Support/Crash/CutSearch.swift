import CairnStore

/// Makes the cuts of an exhaustive search, and checks that the store recovers from each.
///
/// The image of a disk alone determines what an open finds, so no image is opened twice.
final class CutSearch {
  /// What is known about images.
  final class Memory {
    fileprivate var found: [DiskDigest: ModelState] = [:]
    /// Images whose recovery was cut.
    fileprivate var cutInRecovery: Set<DiskDigest> = []

    /// Beyond this many images, all are forgotten and may be examined again.
    private static let limit = 200_000

    fileprivate func add(_ state: ModelState, _ digest: DiskDigest) {
      if found.count >= Self.limit { found = [:] }
      found[digest] = state
    }
  }

  private(set) var tally = Tally()
  let configuration: StoreConfiguration
  private let now: Timestamp
  private let freeDecisionCount: Int
  private let memory: Memory

  init(
    _ configuration: StoreConfiguration, now: Timestamp, freeDecisionCount: Int, memory: Memory
  ) {
    self.configuration = configuration
    self.now = now
    self.freeDecisionCount = freeDecisionCount
    self.memory = memory
    // The tally shows them in this order.
    for name in ["moments", "whole moments", "cuts", "kills"] { tally[name] = 0 }
  }

  // MARK: Moments

  /// Runs `body` in a process. Examines each call at which a cut may leave something that was
  /// impossible at the last examined call. At other calls, a cut may leave less, but nothing new.
  func watching<Result>(
    _ process: SimulatedProcess,
    _ look:
      @escaping (_ call: SimulatedFileSystem.Call, _ number: Int, _ isNew: Bool) throws ->
      Void,
    while body: () throws -> Result
  ) throws -> Result {
    var last = SimulatedDisk.Unsettled()
    var number = 0
    var failure: (any Error)?
    process.fileSystem.intervene = { call in
      if failure != nil { return nil }
      let unsettled = process.fileSystem.disk.unsettled
      let (current, isNew) = (number, unsettled.exceeds(last))
      // First, because the examination may make calls.
      (number, last) = (number + 1, unsettled)
      do { try look(call, current, isNew) } catch { failure = error }
      return nil
    }
    defer { process.fileSystem.intervene = nil }
    let result = Swift.Result { try body() }
    if let failure { throw failure }
    return try result.get()
  }

  // MARK: Cuts

  /// Checks what a cut at this moment may leave, within the bound of the search.
  ///
  /// - Parameter name: the name under which the cuts are counted.
  func checkCuts(
    _ disk: SimulatedDisk, legal: [ModelState], as name: String = "cuts", _ place: String
  ) throws {
    let limit = freeDecisionCount
    let decisionCount = decisionCount(disk)
    if name == "cuts" {
      tally["moments"] += 1
      tally["whole moments"] += decisionCount <= limit ? 1 : 0
    }
    func check(_ free: [Int], _ rest: EnumeratedCut.Rest) throws {
      var cut = EnumeratedCut(free: free, rest: rest)
      repeat {
        let image = disk.afterPowerCut(&cut)
        tally[name] += 1
        do { try find(in: image, legal: legal) } catch {
          throw FuzzFailure("after a power cut \(place) that left \(cut): \(error)")
        }
      } while cut.advance()
    }
    if decisionCount <= limit { return try check(Array(0..<limit), .oldest) }
    for rest in EnumeratedCut.Rest.uniform {
      for first in 0...(decisionCount - limit) {
        try check(Array(first..<(first + limit)), rest)
        // Every pair of decisions that are too far apart to share a window.
        for second in min(first + limit, decisionCount)..<decisionCount {
          try check([first, second], rest)
        }
      }
    }
  }

  /// The number of decisions may depend on the decisions. The highest is used for all.
  private func decisionCount(_ disk: SimulatedDisk) -> Int {
    EnumeratedCut.Rest.uniform.map { rest in
      var cut = EnumeratedCut(free: [], rest: rest)
      _ = disk.afterPowerCut(&cut)
      return cut.decisionCount
    }.max() ?? 0
  }

  /// Cuts the recoveries from some of the cuts at this moment.
  ///
  /// The cut determines what an open finds, and nothing in the recovery may change that.
  func checkCutsInRecovery(_ disk: SimulatedDisk, legal: [ModelState], _ place: String) throws {
    for rest in EnumeratedCut.Rest.allCases {
      func image() -> SimulatedDisk {
        var cut = EnumeratedCut(free: [], rest: rest)
        return disk.afterPowerCut(&cut)
      }
      let first = image()
      guard memory.cutInRecovery.insert(first.digest).inserted else { continue }
      let place = "\(place) that left the \(rest)"
      let state = try find(in: first, legal: legal)
      try checkRecovery(
        on: image(), legal: [state], cutLegal: [state], as: "cuts in recovery after a cut",
        "from a cut \(place)")
    }
  }

  /// Recovers a disk as it is, with its page cache. Cuts the power at each call of the recovery,
  /// and once more at its end.
  ///
  /// - Parameters:
  ///   - legal: what the recovery may find.
  ///   - cutLegal: what may be found after a cut during it, or `nil` if it is not cut.
  func checkRecovery(
    on disk: SimulatedDisk, legal: [ModelState], cutLegal: [ModelState]?, as name: String,
    _ place: String
  ) throws {
    let process = SimulatedProcess.start(on: disk, seed: 2)
    defer { process.kill() }
    let state: ModelState
    do {
      let store = try watching(process) { [self] call, _, isNew in
        guard isNew, let cutLegal else { return }
        try checkCuts(disk, legal: cutLegal, as: name, "at a \(call.rawValue) of that")
      } while: {
        try process.open(configuration)
      }
      state = try check(store, legal: legal)
      if cutLegal != nil { try checkCuts(disk, legal: [state], as: name, "after that") }
    } catch {
      throw FuzzFailure("in a recovery \(place): \(error)")
    }
  }

  // MARK: Images

  /// Opens an image, unless the result is already known.
  @discardableResult
  private func find(in image: SimulatedDisk, legal: [ModelState]) throws -> ModelState {
    let digest = image.digest
    if let state = memory.found[digest],
      legal.contains(where: { Self.isEqual(state, $0) })
    {
      return state
    }
    tally["recoveries"] += 1
    // Seeded with the image, so that a separate run repeats a failure.
    var choices = FuzzRandom(seed: digest.first)
    if choices.once(in: 2) {
      var check = RecoveryCheck(configuration: configuration, now: now)
      check.depthLimit = 0
      try check.check(image.settled(), legal: legal, &choices)
    }
    let process = SimulatedProcess.start(on: image, seed: 3)
    defer { process.kill() }
    let state = try check(try process.open(configuration), legal: legal)
    memory.add(state, digest)
    return state
  }

  private static func isEqual(_ found: ModelState, _ expected: ModelState) -> Bool {
    guard found.count == expected.count else { return false }
    for (key, entry) in expected {
      guard var other = found[key] else { return false }
      // The version of an unacknowledged write is not known.
      if entry.version == nil { other.version = nil }
      if other != entry { return false }
    }
    return true
  }

  private func check(_ store: Store, legal: [ModelState]) throws -> ModelState {
    let state = try RecoveryCheck.match(store, legal, now: now, "after an open")
    let quarantined = try store.statistics().recovery.quarantinedFiles
    if !quarantined.isEmpty {
      throw FuzzFailure("a crash alone brought \(quarantined) into quarantine")
    }
    return state
  }

  /// Counts a kill of the process.
  func countKill() { tally["kills"] += 1 }
}
