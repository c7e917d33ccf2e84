package import CairnStore

/// What the errors of a run should say, and which failures may go unreported.
extension FaultRun {
  /// Whether an error leaves it unknown whether the write will be found.
  func isDoubtful(_ error: StoreError) -> Bool {
    switch error {
    case .durabilityUnknown, .poisoned:
      isPoisoned = true
      return true
    default: return false
    }
  }

  /// Checks that an error may be thrown now, and is complete: it must have the number and the path
  /// of a failed call.
  ///
  /// - Parameter first: how many calls had failed before.
  package func judge(_ error: StoreError, since first: Int, wasPoisoned: Bool) throws {
    trace?("  \(error)")
    tally["errors"] += 1
    // A failure in the background is thrown by a later write.
    var causes = injector.failures[first...]
    let (number, path): (Int32, String)
    switch error {
    case .noSpace(let place, _, let limit):
      (number, path) = (Self.number(of: limit), place)
      let isOfStore = [SimulatedProcess.path, Self.copyPath, "/backup"].contains {
        place.hasPrefix($0)
      }
      if disk.capacity != nil, limit == .disk, isOfStore { return }
    case .system(let failure):
      (number, path) = (failure.errorNumber, failure.path)
      if Self.isOfSpace(number) { throw FuzzFailure("lack of space, but not `noSpace`: \(error)") }
    case .poisoned(let failure), .durabilityUnknown(let failure):
      (number, path) = (failure.errorNumber, failure.path)
      causes =
        injector.currentFailures.filter {
          !Self.isOfSpace($0.number) || Self.poisoningCalls.contains($0.call)
        }[...]
    default: throw FuzzFailure("an unexpected error: \(error)")
    }
    if wasPoisoned, injector.failures.count == first {
      switch error {
      case .poisoned, .durabilityUnknown: break
      default: throw FuzzFailure("not poisoned: \(error)")
      }
    }
    if causes.isEmpty { throw FuzzFailure("an error though nothing failed: \(error)") }
    guard causes.contains(where: { $0.number == number && Self.isNamed(by: path, $0) }) else {
      throw FuzzFailure("\(error), but what failed is \(causes.prefix(4))")
    }
  }

  /// If these calls find no room, it is unknown what is on disk.
  private static let poisoningCalls: Set<SimulatedFileSystem.Call> = [
    .synchronizeData, .synchronize,
  ]

  private static func number(of limit: SpaceLimit) -> Int32 {
    switch limit {
    case .disk: SystemError.noSpace
    case .quota: SystemError.quotaExceeded
    case .fileSize: SystemError.fileTooLarge
    }
  }

  static func isOfSpace(_ number: Int32) -> Bool {
    [SystemError.noSpace, SystemError.quotaExceeded, SystemError.fileTooLarge].contains(number)
  }

  /// Whether a path is that of the call's file, or of its directory.
  private static func isNamed(by path: String, _ failure: FaultInjector.Failure) -> Bool {
    guard var place = failure.path else {
      // Random bytes are for a store, not for a file.
      return [SimulatedProcess.path, copyPath].contains { path.hasPrefix($0) }
    }
    if path == place { return true }
    // For a file that is moved to quarantine, the error names the folder.
    let folder = "\(SimulatedProcess.path)/\(FileName.quarantine)"
    if failure.call == .rename, failure.name == strayName, path == folder { return true }
    // Climbing from a directory to the root.
    while place.hasSuffix("/.") || place.hasSuffix("/..") {
      place.removeLast(place.hasSuffix("..") ? 3 : 2)
      if path == place || (path == "/" && place.isEmpty) { return true }
    }
    let directory = place.prefix(upTo: place.lastIndex(of: "/") ?? place.startIndex)
    return !directory.isEmpty && path == directory
  }

  // MARK: Failures without an error

  /// If a foreground operation succeeds, none of its calls may have failed, except with failures
  /// that the store need not report.
  ///
  /// - Parameter isOpening: whether a replay may have read more than the heads that it needed. A
  ///   separate check shows that nothing is missing.
  package func checkHidden(
    since first: Int, in operation: Operation? = nil, isOpening: Bool = false
  ) throws {
    for failure in injector.failures[first...] where !Self.mayBeHidden(failure) {
      if isOpening, failure.call == .read, failure.number == SystemError.inputOutput { continue }
      // The store does not check twice whether there is room for a checkpoint.
      if !isOpening, failure.call == .volume { continue }
      if let operation, failure.call == .read, Self.readsAgain(operation) { continue }
      // A removal of all needs no segment, and writes a manifest of its own.
      let name = String(failure.name)
      if case .removeAll? = operation, FileName.isSegment(name) || name == FileName.newManifest {
        continue
      }
      // If an operation finds no room, it retries once a compaction has made some. A compaction
      // retries with smaller rounds, a trim with fewer entries. Separate checks show that the
      // operation had the right effects.
      if operation != nil, Self.isOfSpace(failure.number) { continue }
      throw FuzzFailure("no error though this failed: \(failure)")
    }
  }

  /// Whether an operation replaces or removes a record that it cannot read; or retries a shorter
  /// read because the first may have failed beyond the record; or keeps a tombstone because it
  /// cannot read the newer put of the key.
  private static func readsAgain(_ operation: Operation) -> Bool {
    switch operation {
    case .put, .batch, .remove, .compareAndSet, .compareAndRemove, .removeMany, .update,
      .setLifetime,
      .get, .trim, .trimBytes, .trimOlder, .removeExpired,
      .compact:
      true
    default: false
    }
  }

  static func mayBeHidden(_ failure: FaultInjector.Failure) -> Bool {
    let name = String(failure.name)
    // A session that finds no prepared manifest writes one.
    if [FileName.nextManifest, FileName.newNextManifest].contains(name) { return true }
    // A store does without a checkpoint that cannot be written or read.
    if name.hasPrefix("ckpt-") { return true }
    // If a file cannot be shortened now, the next open does it.
    if [.open, .status].contains(failure.call), FileName.isSegment(name) { return true }
    // The next manifest may not fit until others release space.
    if isOfSpace(failure.number), name == FileName.newManifest { return true }
    // If the reserve cannot be lent or taken back, a compaction uses the space there is.
    if [FileName.reserve, FileName.spare].contains(name) { return true }
    // A new segment that does not fit is made smaller, or later, once others release space.
    if isOfSpace(failure.number), FileName.isSegment(name) { return true }
    switch failure.call {
    // If a file cannot be shortened now, the next open does it.
    case .lockBytes: return true
    // A file that cannot be removed is logged, and the next open removes it.
    case .unlink: return true
    // Salts for the next session's first manifest, which is prepared only if this succeeds.
    case .randomBytes: return true
    // An unknown boot counts as a restart.
    case .bootIdentifier: return !SystemError.isOfProcess(failure.number)
    // The protection is only a guard against stray writes.
    case .protect: return true
    // Without a mapping, reads and writes are system calls.
    case .map: return failure.number == SystemError.noMemory
    // A signal leads to smaller steps, and lack of room to smaller growth. Space for removals and
    // for the next manifest is reserved only if there is room.
    case .allocate:
      return failure.number == SystemError.interrupted || name == FileName.newManifest
        || FileName.isSegment(name)
    // The mark of a failed sync, the size of the spare manifest, and the space that a segment
    // releases.
    case .truncate:
      return [FileName.lock, FileName.newManifest].contains(name) || FileName.isSegment(name)
    // Reserving space for the next manifest.
    case .open: return name == FileName.newManifest
    case .status: return [FileName.lock, FileName.newManifest].contains(name)
    // The store need not sync the parent if it is not allowed to.
    case .openDirectory, .synchronize:
      return name == ".."
        && [SystemError.accessDenied, SystemError.readOnlyFileSystem].contains(failure.number)
    default: return false
    }
  }

  /// A verification must report every failure.
  package func checkVerified(_ report: CheckReport, since first: Int) throws {
    if let failure = injector.failures[first...].first, report.errors.isEmpty {
      throw FuzzFailure("verify finds nothing wrong though this failed: \(failure)")
    }
  }

  /// A salvage leaves out what the medium cannot read, after reading it page by page.
  func checkSalvaged(since first: Int) throws {
    for failure in injector.failures[first...] where !Self.mayBeHidden(failure) {
      let isOfSource = failure.path?.hasPrefix(SimulatedProcess.path) == true
      if isOfSource, SystemError.isOfMedium(failure.number),
        [.read, .open, .status].contains(failure.call)
      {
        continue
      }
      throw FuzzFailure("a salvage reports no error, although this failed: \(failure)")
    }
  }
}
