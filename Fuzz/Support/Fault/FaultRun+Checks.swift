import CairnRepair
import CairnStore

/// Checks what other calls report about the store of a run while no process has it open.
extension FaultRun {
  static let copyPath = "/copy"

  func verify() throws {
    let checker = SimulatedProcess.start(on: disk, seed: 1)
    injector.install(on: checker.fileSystem)
    defer { checker.kill() }
    let first = injector.failures.count
    do {
      let report = try Store.verify(path: SimulatedProcess.path, environment: checker.environment)
      if !report.errors.isEmpty, !hasFailedSync {
        throw FuzzFailure("verify finds \(report.errors)")
      }
      try checkVerified(report, since: first)
    } catch let error as StoreError {
      try judge(error, since: first, wasPoisoned: false)
    }
    if checker.fileSystem.leftCount > 0 { throw FuzzFailure("verify leaves files open") }
  }

  /// Salvages the store: everything except what a fault makes unreadable.
  func salvage() throws {
    let worker = SimulatedProcess.start(on: disk, seed: 2)
    injector.install(on: worker.fileSystem)
    defer {
      worker.kill()
      disk.setContents(nil, of: Self.copyPath)
    }
    let before = injector.hitCount
    let first = injector.failures.count
    do {
      let report = try Store.salvage(
        path: SimulatedProcess.path, to: Self.copyPath, environment: worker.environment,
        segmentByteLimit: 64 << 10, clock: clock)
      let wasHit = injector.hitCount > before
      // What a kill left unfinished is not a loss.
      let isWhole =
        report.lossCount == 0 && report.lostKeyCount == 0 && report.manifest == .used
      // After a removal of all, even one that threw, the segment that the next write makes has no
      // file yet. If a fault prevented the close, a salvage cannot know that.
      let mayMissFile =
        model.afterDeath.contains { $0.isEmpty }
        && report.losses.allSatisfy { $0.place.cause == .missingFile && $0.range.isEmpty }
      if !wasHit, !hasFailedSync, !isWhole, !mayMissFile {
        throw FuzzFailure("a salvage of a sound store finds \(report.losses)")
      }
      try checkSalvaged(since: first)
      try pausing { try checkCopy(isWhole: isWhole) }
      tally["salvages"] += 1
    } catch let error as StoreError {
      try judge(error, since: first, wasPoisoned: false)
      // A single fault does not prevent the clean-up, unless it hits the clean-up itself or leaves
      // the owner of the lock file unknown.
      let isLockDoubtful = !injector.failedCalls.isDisjoint(with: [.status, .lock, .names])
      let left = disk.names(at: Self.copyPath).filter { !isLockDoubtful || $0 != FileName.lock }
      if !injector.isLasting, !injector.failedCalls.contains(.unlink), !left.isEmpty {
        throw FuzzFailure("a failed salvage leaves \(left)")
      }
      tally["failed salvages"] += 1
    }
    if worker.fileSystem.leftCount > 0 { throw FuzzFailure("a salvage leaves files open") }
  }

  /// Checks a finished copy. If no loss is reported, it must equal what an open returns.
  private func checkCopy(isWhole: Bool) throws {
    let reader = SimulatedProcess.start(on: disk, seed: 3)
    defer { reader.kill() }
    let copy = try Store(
      path: Self.copyPath, configuration: configuration, environment: reader.environment,
      readOnly: true)
    let contents = try StoreContents(of: copy, now: clock.now())
    if isWhole, contents.match(legalAfterDeath) == nil {
      throw FuzzFailure("a copy differs: \(contents.differences(from: model.current))")
    }
    for (key, entry) in contents.entries
    where writtenValues[key]?.contains(entry.value) != true {
      throw FuzzFailure("a copy has a value that was never written")
    }
  }
}
