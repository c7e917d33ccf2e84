import CairnStore

/// What another thread does during an operation.
extension CrashRun {
  /// Another thread writes while a sync runs, and finishes before it.
  ///
  /// - Parameter removes: whether most of the writes are removals of existing keys.
  func writeMeanwhile(during other: Operation, removes: Bool = false) {
    guard let store = process.store, !isMeanwhile else { return }
    isMeanwhile = true
    defer { isMeanwhile = false }
    let now = clock.now()
    let state = model.candidates.last ?? model.current
    let prefersRemoval = removes && choices.once(in: 2)
    let present = removes ? OperationGenerator.keys.filter { state[$0] != nil } : []
    let key = choices.element(of: present.isEmpty ? OperationGenerator.keys : present)
    func entry() -> ModelEntry { generator.entry(&choices, now: now, mayBeLarge: false) }
    let operation: Operation
    switch prefersRemoval ? 0 : choices.below(8) {
    case 6...7:
      // Including keys that a compaction may already have copied.
      operation = .setLifetime(key: key, .milliseconds(1 + choices.below(8000)), .process)
    case 0: operation = .remove(key: key, .process)
    case 1:
      let second = choices.element(of: OperationGenerator.keys)
      operation = .batch([(key, entry()), (second, nil)], .process)
    case 2 where other.allowsRemovalOfAllMeanwhile: operation = .removeAll
    default: operation = .put(key: key, entry(), .process)
    }
    let steps = operation.steps(from: state, now: now, limits: ModelLimits(configuration))
    if steps.isEmpty { return }
    trace?("    meanwhile \(operation.name)")
    model.candidates += steps
    do {
      let versions = try operation.perform(on: store, holding: state, now: now)
      tally["writes meanwhile"] += 1
      // If the process has died, no caller gets the result.
      if process.fileSystem.isDead { return }
      try note(versions, in: model.candidates.last)
      model.acknowledgedCandidateCount = model.candidates.count
    } catch {
      noteMeanwhile(error, of: operation, during: other)
      // After a failed sync, the write may be in the log.
      if case .durabilityUnknown? = error as? StoreError { return }
      if !process.fileSystem.isDead { model.candidates.removeLast(steps.count) }
    }
  }

  /// Another thread makes a checkpoint.
  func checkpointMeanwhile(during other: Operation) {
    guard let store = process.store, !isMeanwhile else { return }
    isMeanwhile = true
    defer { isMeanwhile = false }
    do {
      try store.checkpoint()
      tally["checkpoints meanwhile"] += 1
    } catch { noteMeanwhile(error, of: .checkpoint, during: other) }
  }

  /// Keeps an unexpected error until the current operation is done.
  private func noteMeanwhile(
    _ error: any Error, of operation: Operation, during other: Operation
  ) {
    if failureMeanwhile != nil || isExcused(error, during: other) { return }
    failureMeanwhile = FuzzFailure(
      "\(operation.name) during \(other.name) failed: \(error)")
  }

  /// Whether the process is dead, so no caller received the error, or the error says that the store
  /// is being closed or that a sync has failed.
  private func isExcused(_ error: any Error, during other: Operation) -> Bool {
    if process.fileSystem.isDead { return true }
    return switch error as? StoreError {
    case .closed: if case .reopen = other { true } else { false }
    case .poisoned, .durabilityUnknown: hasFailedSync
    default: false
    }
  }
}

extension Operation {
  /// Whether the operation may write outside the log, so other threads' concurrent writes come
  /// before it.
  var writesAside: Bool {
    switch self {
    case .put, .compareAndSet, .update, .batch, .setLifetime: true
    default: false
    }
  }

  /// Whether the operation's syncs hold none of the locks that `removeAll` needs.
  fileprivate var allowsRemovalOfAllMeanwhile: Bool {
    switch self {
    case .sync, .compact, .wait, .runJobs, .checkpoint: true
    default: false
    }
  }
}
