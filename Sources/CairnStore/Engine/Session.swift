internal import Synchronization

/// The shared state of an open store's parts: its location, its configuration, and whether it is
/// still open.
final class Session: Sendable {
  let configuration: StoreConfiguration
  let limits: WriteLimits
  let environment: Environment
  let directory: Directory
  let clock: StoreClock
  let isReadOnly: Bool
  let storeLock: StoreLock
  let alarm: HousekeepingAlarm
  private let processMark = ProcessMark()
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

  /// The durability class of a write that requests `wanted`. `nil` means the store's class.
  @inline(__always)
  func durability(_ wanted: Durability?) -> Durability { wanted ?? configuration.durability }

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

  /// Throws if, as far as is known without a lock, the store cannot be written to.
  @inline(__always)
  func checkWritable() throws(StoreError) {
    try checkUsable()
    if isReadOnly { throw .readOnly(path: path) }
    try checkPlace()
  }

  var isClosed: Bool { closed.load(ordering: .relaxed) }

  /// Marks the store closed. Returns `false` if it already was.
  func markClosed() -> Bool { !closed.exchange(true, ordering: .relaxed) }

  // MARK: The directory

  /// Whether the store has noticed that the directory is gone.
  var hasVanished: Bool {
    @inline(__always) get { storeLock.hasVanished }
  }

  /// Throws if the store has noticed that the directory is gone.
  @inline(__always)
  func checkPlace() throws(StoreError) {
    if hasVanished { throw .vanished(path: path) }
  }

  /// Checks whether the directory is gone.
  ///
  /// - Returns: whether it is gone, according to this check or an earlier one.
  @discardableResult
  func lookForPlace() -> Bool {
    if isReadOnly { return false }
    switch storeLock.look() {
    case .isThere: return false
    case .isGone: return true
    case .hasJustGone:
      tell(
        .error, .writing,
        "the directory was removed while the store was open; its data is lost, and "
          + "the store writes nothing more into it")
      return true
    }
  }

  /// Checks whether the directory is gone, at most once a second.
  func lookForPlace(at now: Timestamp) {
    if storeLock.takeTurnToLook(at: now) { lookForPlace() }
  }

  // MARK: Messages

  /// Logs a message. The caller must hold no lock, because the log may use the store.
  func log(
    _ level: DiagnosticLog.Level, _ category: DiagnosticLog.Category,
    _ text: @autoclosure () -> String
  ) { configuration.log(level, category, path: path, text()) }

  /// Logs a message from code that may hold a lock. The message is logged later, under no lock.
  func tell(_ level: DiagnosticLog.Level, _ category: DiagnosticLog.Category, _ text: String) {
    guard configuration.log.takes(level) else { return }
    environment.background.run { [log = configuration.log, path] in
      log(level, category, path: path, text)
    }
  }

  /// Reports damage as a scrub does, but later and under no lock.
  func tell(_ damage: Damage) {
    environment.background.run { [configuration, path] in
      Self.report(damage, configuration, path)
    }
  }

  /// Reports damage to the log and the observer. The caller must hold no lock.
  func report(_ damage: Damage) { Self.report(damage, configuration, path) }

  private static func report(
    _ damage: Damage, _ configuration: StoreConfiguration, _ path: String
  ) {
    configuration.log(
      .error, .damage, path: path,
      "damage: \(damage.place); newest values at this place: \(damage.keyCount ?? damage.keys.count)"
    )
    configuration.damageObserver?(damage)
  }

  /// Schedules a pass of housekeeping soon. Returns `false` if it rests after a failure.
  @discardableResult
  func wakeHousekeeping() -> Bool { isReadOnly || isClosed || alarm.ring() }

  /// Whether the error only says that `diskByteLimit` is reached. A full cache often reaches it, and
  /// the next write makes room.
  func isAtOwnLimit(_ error: StoreError) -> Bool {
    if case .noSpace(_, _, .quota) = error { configuration.diskByteLimit != nil } else { false }
  }

  /// Runs a job unless the store is closed. Returns `false` if the job failed; the failure is
  /// logged.
  @discardableResult
  func attempt(
    _ what: String, _ level: DiagnosticLog.Level, _ job: () throws(StoreError) -> Void
  ) -> Bool {
    if isClosed { return true }
    do { try job() } catch {
      if isClosed { return true }
      // This error has already been logged.
      if case .vanished = error { return false }
      log(isAtOwnLimit(error) ? .info : level, .maintenance, "\(what): \(error)")
      return false
    }
    return true
  }
}
