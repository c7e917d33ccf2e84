import CairnRepair
import CairnStore

/// What snapshots and backups of a run should show.
extension FaultRun {
  /// A snapshot must not change, whatever happens later. If a failing call prevents a read, a later
  /// read must succeed.
  func checkSnapshot() throws {
    guard let (snapshot, state, now) = held else { return }
    held = nil
    defer { snapshot.close() }
    func check() throws {
      let contents = try StoreContents(of: snapshot, now: now)
      if contents.match([state]) == nil {
        throw FuzzFailure("a snapshot has changed: \(contents.differences(from: state))")
      }
    }
    let first = injector.failures.count
    do { try check() } catch let error as StoreError {
      try judge(error, since: first, wasPoisoned: false)
    }
    try pausing(check)
    tally["snapshots"] += 1
  }

  /// A backup that succeeded must equal the store that was backed up, and be durable.
  func checkBackup(_ path: String) throws {
    try checkBackup(path, on: disk, "a backup")
    var cut = RandomCut(choices.split())
    let afterCut = disk.afterPowerCut(&cut)
    // As with a store, the backup need not sync its name if the parent may not be read.
    let mayLoseName = injector.currentFailures.contains {
      [.openDirectory, .synchronize].contains($0.call) && $0.path?.hasPrefix(path) == true
        && Self.mayBeHidden($0)
    }
    if !mayLoseName { try checkBackup(path, on: afterCut, "after a power cut, a backup") }
    disk.setContents(nil, of: path)
    tally["backups"] += 1
  }

  private func checkBackup(_ path: String, on disk: SimulatedDisk, _ what: String) throws {
    let reader = SimulatedProcess.start(on: disk, seed: 4)
    defer { reader.kill() }
    do {
      let copy = try Store(
        path: path, configuration: configuration, environment: reader.environment, readOnly: true)
      let contents = try StoreContents(of: copy, now: clock.now())
      if contents.match([live]) == nil {
        throw FuzzFailure("\(what) differs: \(contents.differences(from: live))")
      }
      try copy.close()
      let report = try Store.verify(path: path, environment: reader.environment)
      if !report.errors.isEmpty { throw FuzzFailure("\(what) is damaged: \(report.errors)") }
    } catch let error as StoreError {
      throw FuzzFailure("\(what) that succeeded does not open or read: \(error)")
    }
  }

  /// A failed backup must leave nothing. If something could not be removed, what is left is either
  /// no store or the whole store.
  func checkNoBackup(_ path: String) throws {
    let reader = SimulatedProcess.start(on: disk, seed: 4)
    defer {
      reader.kill()
      disk.setContents(nil, of: path)
    }
    let isStuck = injector.currentFailures.contains {
      $0.call == .unlink && $0.path?.hasPrefix(path) == true
    }
    do {
      _ = try Store(
        path: path, configuration: configuration, environment: reader.environment, readOnly: true)
      guard isStuck else { throw FuzzFailure("a failed backup leaves a store") }
      try checkBackup(path, on: disk, "a failed backup that stays")
    } catch is StoreError {}
    // If one of these calls failed, the backup cannot tell whether the lock file is its own, and
    // may leave it.
    let isLockDoubtful = injector.currentFailures.contains {
      [.status, .lock, .names].contains($0.call) && $0.path?.hasPrefix(path) == true
    }
    let left = disk.names(at: path).filter { !isLockDoubtful || $0 != FileName.lock }
    if !isStuck, !left.isEmpty { throw FuzzFailure("a failed backup leaves \(left)") }
    tally["failed backups"] += 1
  }
}
