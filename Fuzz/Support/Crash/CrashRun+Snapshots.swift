import CairnRepair
import CairnStore

/// Checks of snapshots, of backups, and of poisoned stores.
extension CrashRun {
  /// A snapshot must not change, whatever happens later.
  func checkSnapshot() throws {
    guard let (snapshot, state, now) = held else { return }
    held = nil
    defer { snapshot.close() }
    if process.fileSystem.isDead { return }
    let intervene = process.fileSystem.intervene
    process.fileSystem.intervene = nil
    defer { process.fileSystem.intervene = intervene }
    let contents = try StoreContents(of: snapshot, now: now)
    if contents.match([state]) == nil {
      throw FuzzFailure("a snapshot has changed: \(contents.differences(from: state))")
    }
    tally["snapshots"] += 1
  }

  /// Checks that a backup equals the store that was backed up.
  func checkBackup(
    _ path: String, on environment: Environment, legal: [ModelState]
  ) throws {
    let intervene = process.fileSystem.intervene
    process.fileSystem.intervene = nil
    defer { process.fileSystem.intervene = intervene }
    let copy = try Store(
      path: path, configuration: .simulated(clock), environment: environment, readOnly: true)
    let contents = try StoreContents(of: copy, now: clock.now())
    if contents.match(legal) == nil {
      throw FuzzFailure("a backup differs: \(contents.differences(from: legal[0]))")
    }
    try copy.close()
    let report = try Store.verify(path: path, environment: environment)
    if !report.errors.isEmpty { throw FuzzFailure("a backup is damaged: \(report.errors)") }
  }

  /// A store whose sync has failed must refuse writes and still serve reads.
  func checkPoisoned(by operation: Operation) throws {
    if case .reopen = operation { return }
    guard let store = process.store, !process.fileSystem.isDead else { return }
    process.fileSystem.intervene = nil
    do {
      try store.setValue([1], forKey: choices.element(of: OperationGenerator.keys))
      throw FuzzFailure("a poisoned store accepts a write")
    } catch let error as StoreError {
      guard case .poisoned = error else { throw FuzzFailure("a poisoned store throws \(error)") }
    }
    let contents = try StoreContents(of: store, now: clock.now())
    if contents.match([model.current] + model.candidates) == nil {
      throw FuzzFailure("a poisoned store shows a state that never existed")
    }
    tally["poisoned stores"] += 1
  }
}
