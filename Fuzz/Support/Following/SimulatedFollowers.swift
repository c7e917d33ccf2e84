import CairnStore

/// The followers of a `CrashRun`'s store: two processes of the same simulated machine, until its
/// power fails.
///
/// One reads everything at each step of the writer: before each of its calls, and after each of its
/// writes into a mapping, including those to the page FOLLOW. The other one is slow: at each of its
/// own calls, the writer may take some steps (`SlowFollower`).
///
/// What they find must be a possible state of the store: everything that was acknowledged before
/// the read began, then one of the states that the current operation leads to. They never go back
/// in time.
///
/// What is reordered:
/// - All processes of a machine see calls of the kernel in the order of the writer, with everything
///   that came before them.
/// - Stores to mapped segments are ordered only by the store of the position that follows them
///   (release), and only for a process that loads it (acquire). Until then, any of their words may
///   be seen. So a follower must not use them, and the simulation shows it only some of the words
///   at that step.
/// - The words of the page are stored one after another, each with release. A process that loads
///   one also sees the earlier ones. But three loads are three moments: a follower may have an
///   older position with a newer generation, never the other way round.
final class SimulatedFollowers {
  private var random: FuzzRandom
  private let configuration: StoreConfiguration
  private let areToldOfWrites: Bool
  private var disk: SimulatedDisk?
  private var steady: SimulatedFollower?
  private var slow: SlowFollower?
  /// The number of the state before the current operation. The states that it leads to come after
  /// it.
  private var base = 0
  /// The highest number of a state that was seen.
  private var seen = 0
  /// The states that the slow follower may find, and a lower bound on the last one it found.
  private var slowStates: [NumberedState] = []
  private var slowSeen = 0
  /// How often each may be told that published data is gone.
  private var (steadyAllowance, slowAllowance) = (0, 0)
  private(set) var tally = Tally()

  private struct NumberedState {
    var number: Int
    var state: ModelState
  }

  /// - Parameters:
  ///   - configuration: the writer's.
  ///   - areToldOfWrites: whether the writer announces them.
  init(_ random: FuzzRandom, _ configuration: StoreConfiguration, areToldOfWrites: Bool) {
    self.random = random
    self.areToldOfWrites = areToldOfWrites
    var own = StoreConfiguration()
    own.log = .silent
    own.clock = configuration.clock
    self.configuration = own
  }

  // MARK: What the run reports

  /// Called when a store is open for writing, with these contents.
  func begin(on disk: SimulatedDisk, with state: ModelState) {
    base += Self.numbersOfOperation
    slowStates.append(NumberedState(number: base, state: state))
    if self.disk === disk { return }
    self.disk = disk
    (seen, slowSeen, slowStates) = (base, base, [])
    (steadyAllowance, slowAllowance) = (0, 0)
    steady = makeFollower()
    slow = SlowFollower(makeFollower(), random.split())
  }

  /// Called when an operation has been acknowledged.
  func noteEnd() { base += Self.numbersOfOperation }

  /// More states than any operation leads to.
  private static let numbersOfOperation = 1000

  /// Called when a sync has failed: published writes may be discarded.
  func allowOutdated() {
    steadyAllowance += 1
    slowAllowance += 1
  }

  /// How many states of the current operation have been seen.
  var seenCount: Int { max(0, max(seen, slowSeen) - base) }

  /// Called when the power fails or the run ends.
  func end() {
    _ = slow?.finish()
    slow?.end()
    steady?.close()
    (disk, steady, slow) = (nil, nil, nil)
  }

  private func makeFollower() -> SimulatedFollower {
    guard let disk else { preconditionFailure("there is no disk") }
    var configuration = configuration
    configuration.mapsFiles = !random.once(in: 3)
    let freshness = random.once(in: 3) ? Freshness.manual : .everyRead
    return SimulatedFollower(
      disk, seed: random.next(), configuration, freshness, asks: !areToldOfWrites)
  }

  // MARK: Looks

  /// - Parameters:
  ///   - states: what the store may contain now.
  ///   - first: how many states of the current operation came before the first of them, or `nil` if
  ///     they have no order.
  func look(_ states: [ModelState], from first: Int?, now: Timestamp) throws {
    guard let steady else { return }
    // Without an order, no state counts as earlier than what was seen.
    let least = max(base, seen, slowSeen)
    let numbered = states.enumerated().map { index, state in
      NumberedState(number: first.map { base + $0 + index } ?? least, state: state)
    }
    do {
      let contents = try steady.contents(
        now: now, isNew: random.once(in: 8), isSnapshot: random.once(in: 2))
      let number = try Self.match(contents, numbered, from: seen)
      seen = max(seen, number)
      tally["looks of followers"] += 1
    } catch StoreError.outdated where steadyAllowance > 0 {
      steadyAllowance -= 1
      seen = base
      tally["followers told of a loss"] += 1
    }
    if let slow { try lookSlowly(slow, numbered, isOrdered: first != nil, now: now) }
  }

  private func lookSlowly(
    _ slow: SlowFollower, _ states: [NumberedState], isOrdered: Bool, now: Timestamp
  ) throws {
    if slow.isReading {
      let last = slowStates.last?.number ?? 0
      slowStates += isOrdered ? states.filter { $0.number > last } : states
    } else {
      guard random.once(in: 3) else { return }
      slowStates = states
      slow.begin(now: now, isNew: random.once(in: 3))
    }
    if random.once(in: 2), let result = slow.goOn() { try check(result) }
  }

  /// Lets the slow follower finish while the writer stands still.
  func finishReads() throws {
    if let result = slow?.finish() { try check(result) }
  }

  private func check(_ result: Result<StoreContents, any Error>) throws {
    do {
      slowSeen = max(slowSeen, try Self.match(try result.get(), slowStates, from: slowSeen))
      tally["slow looks"] += 1
    } catch StoreError.outdated where slowAllowance > 0 {
      slowAllowance -= 1
      slowSeen = 0
      tally["followers told of a loss"] += 1
    } catch { throw FuzzFailure("(slowly) \(error)") }
  }

  /// The number of the first state that has these contents.
  private static func match(
    _ contents: StoreContents, _ states: [NumberedState], from least: Int
  ) throws -> Int {
    let allowed = states.filter { $0.number >= least }
    if let found = allowed.first(where: { contents.match([$0.state]) != nil }) {
      return found.number
    }
    guard let last = (allowed.last ?? states.last) else { throw FuzzFailure("no state is allowed") }
    let isEarlier = states.contains { contents.match([$0.state]) != nil }
    throw FuzzFailure(
      isEarlier
        ? "goes back to an earlier state"
        : "sees no state of the store: \(contents.differences(from: last.state))")
  }
}

/// A process that follows the store of a simulated disk.
final class SimulatedFollower {
  private let files: SimulatedFileSystem
  private let configuration: StoreConfiguration
  private let freshness: Freshness
  /// Whether the follower requests new writes, because they are not announced.
  private let asks: Bool
  private var store: Store?
  /// The file system that the follower's calls go through.
  var between: any FileSystem

  init(
    _ disk: SimulatedDisk, seed: UInt64, _ configuration: StoreConfiguration,
    _ freshness: Freshness, asks: Bool
  ) {
    files = SimulatedFileSystem(disk: disk, seed: seed)
    between = files
    self.configuration = configuration
    self.freshness = freshness
    self.asks = asks
  }

  /// Everything that the follower sees.
  ///
  /// - Parameters:
  ///   - isNew: whether the process has just begun.
  ///   - isSnapshot: whether it reads a snapshot and not the store. A fixed view is read as it is.
  func contents(now: Timestamp, isNew: Bool, isSnapshot: Bool) throws -> StoreContents {
    if isNew {
      try store?.close()
      store = nil
    }
    let store = try store ?? open()
    self.store = store
    if asks || freshness == .manual { try store.catchUp() }
    if !isSnapshot || freshness == .manual { return try StoreContents(of: store, now: now) }
    let snapshot = try store.snapshot()
    defer { snapshot.close() }
    return try StoreContents(of: snapshot, now: now)
  }

  private func open() throws -> Store {
    try Store(
      following: SimulatedProcess.path, freshness: freshness, configuration: configuration,
      environment: Environment(
        fileSystem: between, background: ManualBackgroundQueue(), pause: { _ in }))
  }

  func close() {
    try? store?.close()
    store = nil
    files.kill()
  }
}
