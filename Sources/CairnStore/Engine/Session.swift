internal import Synchronization

/// What the parts of an open store share: where it lies, how it is configured, and whether it is still open.
final class Session: Sendable {
  let configuration: StoreConfiguration
  let limits: WriteLimits
  let environment: Environment
  let directory: Directory
  let clock: StoreClock
  let isReadOnly: Bool
  let storeLock: StoreLock
  let alarm: HousekeepingAlarm
  private let processMark = ForkGuard.arm()
  private let closed = Atomic(false)

  init(
    _ parts: borrowing OpenedStore, _ configuration: StoreConfiguration, _ environment: Environment
  ) {
    self.configuration = configuration
    limits = WriteLimits(configuration)
    self.environment = environment
    directory = parts.directory
    clock = parts.clock
    isReadOnly = parts.isReadOnly
    storeLock = StoreLock(parts.lockFile, now: parts.clock.now())
    alarm = HousekeepingAlarm(environment.maintenance)
  }

  var path: String { directory.path }

  /// The class of a write that asks for this one; `nil`: for the store's.
  @inline(__always)
  func durability(_ wanted: Durability?) -> Durability { wanted ?? configuration.durability }

  /// Whether removals of all need not be on disk when they return.
  var removesWithoutSync: Bool { configuration.durability != .durable }

  // MARK: Checks

  /// Throws in a child of the process that opened the store.
  @inline(__always)
  func checkProcess() throws(StoreError) {
    if processMark.isForeign { throw .usedAfterFork(path: path) }
  }

  /// Throws unless the store can be used.
  @inline(__always)
  func checkUsable() throws(StoreError) {
    try checkProcess()
    if closed.load(ordering: .relaxed) { throw .closed(path: path) }
  }

  /// Throws unless the store can be written to, as far as can be told without a lock.
  func checkWritable() throws(StoreError) {
    try checkUsable()
    if isReadOnly { throw .readOnly(path: path) }
    try checkPlace()
  }

  var isClosed: Bool { closed.load(ordering: .relaxed) }

  /// Marks the store closed; `false` where it was already.
  func markClosed() -> Bool { !closed.exchange(true, ordering: .relaxed) }

  // MARK: The directory

  /// Whether it was noticed that the directory is gone.
  var hasVanished: Bool {
    @inline(__always) get { storeLock.hasVanished }
  }

  /// Throws where it was noticed that the directory is gone.
  @inline(__always)
  func checkPlace() throws(StoreError) {
    if hasVanished { throw .vanished(path: path) }
  }

  /// Looks whether the directory is gone.
  ///
  /// - Returns: whether it is, or was found to be before.
  @discardableResult
  func lookForPlace() -> Bool {
    if isReadOnly { return false }
    switch storeLock.look() {
    case .isThere: return false
    case .isGone: return true
    case .hasJustGone:
      tell(
        .error, .writing,
        "the directory was removed while the store was open; what it held is lost, and nothing more "
          + "is written into it")
      return true
    }
  }

  /// Looks whether the directory is gone, once a second.
  func lookForPlace(at now: Timestamp) {
    if storeLock.takeTurnToLook(at: now) { lookForPlace() }
  }

  // MARK: Words for others

  /// Logs a message. Under no lock, since the log may use the store.
  func log(
    _ level: DiagnosticLog.Level, _ category: DiagnosticLog.Category,
    _ text: @autoclosure () -> String
  ) { configuration.log(level, category, path: path, text()) }

  /// Logs a message from where a lock may be held: later, under none.
  func tell(_ level: DiagnosticLog.Level, _ category: DiagnosticLog.Category, _ text: String) {
    guard configuration.log.takes(level) else { return }
    environment.background.run { [log = configuration.log, path] in
      log(level, category, path: path, text)
    }
  }

  /// Has a pass of housekeeping run soon.
  func wakeHousekeeping() {
    if isReadOnly || isClosed { return }
    alarm.ring()
  }

  /// Runs a job unless the store is closed; `false` where it failed, which is logged.
  @discardableResult
  func attempt(
    _ what: String, _ level: DiagnosticLog.Level, _ job: () throws(StoreError) -> Void
  ) -> Bool {
    if isClosed { return true }
    do { try job() } catch {
      if isClosed { return true }
      // That was said once.
      if case .vanished = error { return false }
      log(level, .maintenance, "\(what): \(error)")
      return false
    }
    return true
  }
}
