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
    /// Whether it goes on when nobody waits.
    var isInBackground: Bool
    var task: Task<Void, Never>?
    /// The highest that somebody wants, or that the task was made with.
    var priority: TaskPriority?
  }

  /// Somebody who waits.
  final class Waiter: Sendable {
    fileprivate let isDetached = Atomic(false)
  }

  private let state: Lock<State>
  let node = LoadNode()
  private let outdated = Atomic(false)

  init(inBackground: Bool = false) { state = Lock(State(isInBackground: inBackground)) }

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

  /// Whether it has ended.
  var hasOutcome: Bool { state.withLock { $0.outcome != nil } }

  /// Hands over the task that loads. Where nobody waits any more, it is cancelled.
  func start(_ task: Task<Void, Never>, priority: TaskPriority) {
    let (isAbandoned, wanted) = state.withLock { state in
      state.task = task
      // Others may have come since this one was made.
      let wanted = max(priority, state.priority ?? priority)
      state.priority = wanted
      // Where a time limit has ended it, its outcome is there before the task.
      return (state.isAbandoned || state.outcome != nil, wanted)
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
        if let outcome = state.outcome { return outcome }
        return .failure(
          waiter.isDetached.load(ordering: .relaxed) ? SoftTimeLimit() : CancellationError())
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
      if !state.waiters.isEmpty || state.isInBackground {
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

  /// Somebody does not wait any more, and the load goes on.
  func detach(_ waiter: Waiter) {
    let continuation = state.withLock { state -> Continuation? in
      guard let continuation = state.waiters.removeValue(forKey: ObjectIdentifier(waiter)) else {
        return nil
      }
      waiter.isDetached.store(true, ordering: .relaxed)
      state.isInBackground = true
      return continuation
    }
    continuation?.resume(throwing: SoftTimeLimit())
  }

  /// Gives the load up where nobody waits for it.
  ///
  /// - Returns: whether it did.
  @discardableResult
  func leaveBackground() -> Bool {
    let (isGivenUp, task) = state.withLock { state -> (Bool, Task<Void, Never>?) in
      if !state.isInBackground || state.outcome != nil { return (false, nil) }
      state.isInBackground = false
      if !state.waiters.isEmpty { return (false, nil) }
      state.isAbandoned = true
      noteWrite()
      return (true, state.task)
    }
    task?.cancel()
    return isGivenUp
  }

  /// Tells all who wait, unless they were told before.
  ///
  /// - Returns: whether this is the outcome.
  @discardableResult
  func finish(_ outcome: Result<Value, any Error>, cancels: Bool = false) -> Bool {
    let (waiters, task, isFirst) = state.withLock {
      state -> ([ObjectIdentifier: Continuation?], Task<Void, Never>?, Bool) in
      if state.outcome != nil { return ([:], nil, false) }
      state.outcome = outcome
      return (exchange(&state.waiters, with: [:]), exchange(&state.task, with: nil), true)
    }
    if cancels { task?.cancel() }
    for case .some(let continuation) in waiters.values { continuation.resume(with: outcome) }
    return isFirst
  }
}

/// Who waits has a stale value, and does not wait any longer.
struct SoftTimeLimit: Error {}
