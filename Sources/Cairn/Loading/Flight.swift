internal import CairnStore
internal import Synchronization

/// One load of one key, and all who wait for it.
final class Flight<Value: Sendable>: Sendable {
  typealias Continuation = CheckedContinuation<Value, any Error>

  private struct State {
    /// Who waits; `nil` for those that have come and are not suspended yet.
    var waiters: [ObjectIdentifier: Continuation?] = [:]
    var outcome: Result<Value, any Error>?
    /// Whether all have left, so that the outcome is nobody's.
    var isAbandoned = false
    var task: Task<Void, Never>?
    /// The highest that somebody wants, or that the task was made with.
    var priority: TaskPriority?
  }

  /// Somebody who waits.
  final class Waiter: Sendable {}

  private let state = Lock(State())
  let node = LoadNode()
  private let outdated = Atomic(false)

  /// Whether the key was written or removed since the load began, so that what it gives is not to be
  /// kept.
  var isOutdated: Bool { outdated.load(ordering: .acquiring) }

  func noteWrite() { outdated.store(true, ordering: .releasing) }

  /// Adds somebody who is going to wait; `false` where it is too late for that.
  func enter(_ waiter: Waiter) -> Bool {
    state.withLock { state in
      if state.isAbandoned || state.outcome != nil { return false }
      state.waiters[ObjectIdentifier(waiter)] = .some(nil)
      return true
    }
  }

  /// Hands over the task that loads. Where nobody waits any more, it is cancelled.
  func start(_ task: Task<Void, Never>, priority: TaskPriority) {
    let (isAbandoned, wanted) = state.withLock { state in
      state.task = task
      // Others may have come since this one was made.
      let wanted = max(priority, state.priority ?? priority)
      state.priority = wanted
      return (state.isAbandoned, wanted)
    }
    if isAbandoned { return task.cancel() }
    if wanted > priority { task.escalatePriority(to: wanted) }
  }

  /// Has the task run as urgently as somebody wants who waits for it.
  func escalate(to priority: TaskPriority) {
    let task = state.withLock { state -> Task<Void, Never>? in
      if let known = state.priority, known >= priority { return nil }
      state.priority = priority
      return state.task
    }
    task?.escalatePriority(to: priority)
  }

  /// Resumes somebody with the outcome, once there is one, or since it has left.
  func wait(_ waiter: Waiter, _ continuation: Continuation) {
    let outcome = state.withLock { state -> Result<Value, any Error>? in
      guard state.waiters[ObjectIdentifier(waiter)] != nil else {
        return state.outcome ?? .failure(CancellationError())
      }
      state.waiters[ObjectIdentifier(waiter)] = continuation
      return nil
    }
    if let outcome { continuation.resume(with: outcome) }
  }

  /// Somebody does not wait any more.
  ///
  /// - Returns: whether that was the last one, so that the load is given up.
  func leave(_ waiter: Waiter) -> Bool {
    let (continuation, isLast, task) = state.withLock {
      state -> (Continuation?, Bool, Task<Void, Never>?) in
      guard let continuation = state.waiters.removeValue(forKey: ObjectIdentifier(waiter)) else {
        return (nil, false, nil)
      }
      if !state.waiters.isEmpty {
        return (continuation, false, nil)
      }
      state.isAbandoned = true
      // Before another flight can take its place, whose end nobody would tell this one of.
      noteWrite()
      return (continuation, true, state.task)
    }
    if isLast { task?.cancel() }
    continuation?.resume(throwing: CancellationError())
    return isLast
  }

  /// Tells all who wait.
  func finish(_ outcome: Result<Value, any Error>) {
    let waiters = state.withLock { state in
      state.outcome = outcome
      state.task = nil
      return exchange(&state.waiters, with: [:])
    }
    for case .some(let continuation) in waiters.values { continuation.resume(with: outcome) }
  }
}
