package import CairnStore

/// What the errors of a run must say, and which failures may go unsaid.
extension FaultRun {
  /// Whether an error leaves it open whether the write will be found.
  func isDoubtful(_ error: StoreError) -> Bool {
    switch error {
    case .durabilityUnknown, .poisoned:
      isPoisoned = true
      return true
    default: return false
    }
  }

  /// Whether an error may have been thrown now, and says enough: the number and the path of a call
  /// that failed.
  ///
  /// - Parameter first: how many calls had failed before.
  package func judge(_ error: StoreError, since first: Int, wasPoisoned: Bool) throws {
    trace?("  \(error)")
    tally["errors"] += 1
    // What failed in the background comes out with a later write.
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
      if Self.isOfSpace(number) { throw FuzzFailure("want of space, said otherwise: \(error)") }
    case .poisoned(let failure), .durabilityUnknown(let failure):
      (number, path) = (failure.errorNumber, failure.path)
      causes =
        injector.currentFailures.filter {
          !Self.isOfSpace($0.number) || Self.poisoningCalls.contains($0.call)
        }[...]
    default: throw FuzzFailure("an error that does not fit: \(error)")
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

  /// After want of room in these calls it is not known what is on disk: in syncs and in changes of
  /// names; in writes and truncations where they end a segment, or where undoing them fails.
  private static let poisoningCalls: Set<SimulatedFileSystem.Call> = [
    .synchronizeData, .synchronize, .exchange, .rename, .truncate, .write,
  ]

  private static func number(of limit: SpaceLimit) -> Int32 {
    switch limit {
    case .disk: SystemError.noSpace
    case .quota: SystemError.quotaExceeded
    case .fileSize: SystemError.fileTooLarge
    }
  }

  private static func isOfSpace(_ number: Int32) -> Bool {
    [SystemError.noSpace, SystemError.quotaExceeded, SystemError.fileTooLarge].contains(number)
  }

  /// Whether a path is that of the call's file, or of the directory that this is in.
  private static func isNamed(by path: String, _ failure: FaultInjector.Failure) -> Bool {
    guard var place = failure.path else {
      // Random bytes are for a store, not for a file.
      return [SimulatedProcess.path, copyPath].contains { path.hasPrefix($0) }
    }
    if path == place { return true }
    // A file that is set aside: the folder.
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

  /// What was done in the foreground without an error met no failure but those that the store may
  /// keep to itself.
  ///
  /// - Parameter isOpening: whether a replay may have read more than the heads that it needed. That
  ///   nothing is missing is checked besides.
  package func checkHidden(
    since first: Int, in operation: Operation? = nil, isOpening: Bool = false
  ) throws {
    for failure in injector.failures[first...] where !Self.mayBeHidden(failure) {
      if isOpening, failure.call == .read, failure.number == SystemError.inputOutput { continue }
      // Whether there is room for a checkpoint is not asked twice.
      if !isOpening, failure.call == .volume { continue }
      if let operation, failure.call == .read, Self.readsAgain(operation) { continue }
      // What finds no room tries again once a compaction has made some, a compaction with smaller rounds, a
      // trim with fewer entries. What was done, and that nothing else was, is checked besides.
      if operation != nil, Self.isOfSpace(failure.number) { continue }
      throw FuzzFailure("no error though this failed: \(failure)")
    }
  }

  /// Whether an operation replaces or removes what it cannot read, reads less where more than the
  /// record was asked for and not all of it could be had, or keeps a tombstone because it cannot
  /// read the newer put of the key.
  private static func readsAgain(_ operation: Operation) -> Bool {
    switch operation {
    case .put, .batch, .remove, .compareAndSet, .compareAndRemove, .removeMany, .update, .extend,
      .get, .trim, .trimBytes, .trimOlder, .removeExpired,
      .compact, .compactByPieces:
      true
    default: false
    }
  }

  static func mayBeHidden(_ failure: FaultInjector.Failure) -> Bool {
    let name = String(failure.name)
    // A session that finds no manifest made ready writes one, and so does a removal of all.
    if [FileName.nextManifest, FileName.newNextManifest, FileName.emptiedManifest].contains(name) {
      return true
    }
    // A store does without a checkpoint that cannot be written or read.
    if FileName.isCheckpoint(name) { return true }
    // A file that is not shortened now is by the next open.
    if [.open, .status].contains(failure.call), FileName.isSegment(name) { return true }
    // The next manifest finds no room before others have given some back.
    if isOfSpace(failure.number), name == FileName.newManifest { return true }
    // Where the reserve cannot be lent or taken back, a compaction does with what there is.
    if name == FileName.reserve { return true }
    // A new segment that finds no room is made smaller, or once others have given some back.
    if isOfSpace(failure.number), FileName.isSegment(name) { return true }
    switch failure.call {
    // A file that is not shortened now is by the next open.
    case .lockBytes: return true
    // A file that is not removed is logged, and removed by the next open.
    case .unlink: return true
    // Salts for the manifest that the next session begins with, which is made ready where that works out.
    case .randomBytes: return true
    // A guard against stray writes, no more.
    case .protect: return true
    // Without a mapping, reads and writes are system calls.
    case .map: return failure.number == SystemError.noMemory
    // Smaller steps follow a signal, and a smaller growth one that finds no room; what is put by
    // for removals and for the next manifest is so only where there is room.
    case .allocate:
      return failure.number == SystemError.interrupted || name == FileName.newManifest
        || FileName.isSegment(name)
    // The mark of a failed sync, the spare manifest's size, and the space that a segment gives back.
    case .truncate:
      return [FileName.lock, FileName.newManifest].contains(name) || FileName.isSegment(name)
    // Putting space by for the next manifest.
    case .open: return name == FileName.newManifest
    case .status: return [FileName.lock, FileName.newManifest].contains(name)
    // The parent is not the store's to sync where it may not be.
    case .openDirectory, .synchronize:
      return name == ".."
        && [SystemError.accessDenied, SystemError.readOnlyFileSystem].contains(failure.number)
    default: return false
    }
  }

  /// A verification says of every failure that something failed.
  package func checkVerified(_ report: VerificationReport, since first: Int) throws {
    if let failure = injector.failures[first...].first, report.errors.isEmpty {
      throw FuzzFailure("verify finds nothing wrong though this failed: \(failure)")
    }
  }

  /// A salvage leaves out what the medium does not give, and reads it page by page before.
  func checkSalvaged(since first: Int) throws {
    for failure in injector.failures[first...] where !Self.mayBeHidden(failure) {
      let isOfSource = failure.path?.hasPrefix(SimulatedProcess.path) == true
      if isOfSource, SystemError.isOfMedium(failure.number),
        [.read, .open, .status].contains(failure.call)
      {
        continue
      }
      throw FuzzFailure("a salvage gives no error though this failed: \(failure)")
    }
  }
}
