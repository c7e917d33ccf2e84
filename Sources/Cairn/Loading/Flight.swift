internal import CairnStore
internal import Synchronization

/// One load of one key, and all its waiters.
final class Flight<Value: Sendable>: Sendable {
  typealias Continuation = CheckedContinuation<Value, any Error>
  typealias Cancelling = (Task<Void, Never>) -> Void

  private struct State {
    /// The waiters. A waiter that has joined but is not suspended yet has `nil`.
    var waiters: [ObjectIdentifier: Continuation?] = [:]
    var outcome: Result<Value, any Error>?
    /// Whether all waiters have left, so that none receives the outcome.
    var isAbandoned = false
    /// Whether the load continues without waiters.
    var isInBackground: Bool
    var task: Task<Void, Never>?
    /// The highest of the waiters' priorities and the task's initial priority.
    var priority: TaskPriority?
  }

  /// A waiting caller.
  final class Waiter: Sendable {
    fileprivate let isDetached = Atomic(false)
  }

  private let state: Lock<State>
  let node = LoadNode()
  private let outdated = Atomic(false)

  /// The number of removals of tags before the load began.
  let tagRemovalCount: Int

  init(inBackground: Bool = false, tagRemovalCount: Int = 0) {
    state = Lock(State(isInBackground: inBackground))
    self.tagRemovalCount = tagRemovalCount
  }

  /// Whether the result must not be kept: the key has been written or removed since the load began,
  /// or the load was abandoned or timed out.
  var isOutdated: Bool { outdated.load(ordering: .acquiring) }

  func noteWrite() { outdated.store(true, ordering: .releasing) }

  /// Adds a waiter. Returns `false` if the load has ended or was abandoned.
  func enter(_ waiter: Waiter) -> Bool {
    state.withLock { state in
      if state.isAbandoned || state.outcome != nil { return false }
      state.waiters[ObjectIdentifier(waiter)] = .some(nil)
      return true
    }
  }

  /// Whether the load has ended.
  var hasOutcome: Bool { state.withLock { $0.outcome != nil } }

  /// Stores the loading task. Cancels it if the load has ended or was abandoned.
  func start(_ task: Task<Void, Never>, priority: TaskPriority) {
    let (isAbandoned, wanted) = state.withLock { state in
      state.task = task
      // More waiters may have joined since this task was created.
      let wanted = max(priority, state.priority ?? priority)
      state.priority = wanted
      // If a time limit ended the load, the outcome exists before the task.
      return (state.isAbandoned || state.outcome != nil, wanted)
    }
    if isAbandoned { return task.cancel() }
    if wanted > priority { task.escalatePriority(to: wanted) }
  }

  /// Raises the priority of the task to that of a waiter.
  func escalate(to priority: TaskPriority) {
    let task = state.withLock { state -> Task<Void, Never>? in
      if let known = state.priority, known >= priority { return nil }
      state.priority = priority
      return state.task
    }
    task?.escalatePriority(to: priority)
  }

  /// Resumes a waiter once there is an outcome, or if the waiter has left.
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

  /// Removes a waiter.
  ///
  /// - Parameter cancel: cancels the load, which runs its handlers.
  /// - Returns: whether it was the last waiter, which abandons the load.
  func leave(_ waiter: Waiter, _ cancel: Cancelling = { $0.cancel() }) -> Bool {
    let (continuation, isLast, task) = state.withLock {
      state -> (Continuation?, Bool, Task<Void, Never>?) in
      guard let continuation = state.waiters.removeValue(forKey: ObjectIdentifier(waiter)) else {
        return (nil, false, nil)
      }
      // No table has an outdated load, so nothing else could end it.
      if !state.waiters.isEmpty || state.isInBackground && !isOutdated {
        return (continuation, false, nil)
      }
      state.isAbandoned = true
      // Must happen before another flight can replace this one. This flight is not told of later
      // writes.
      noteWrite()
      return (continuation, true, state.task)
    }
    continuation?.resume(throwing: CancellationError())
    // Last, because cancelling runs the loader's handlers.
    if isLast, let task { cancel(task) }
    return isLast
  }

  /// Removes a waiter. The load continues, even without waiters, unless it is outdated.
  ///
  /// - Returns: whether it was the last waiter of an outdated load, which abandons the load.
  func detach(_ waiter: Waiter, _ cancel: Cancelling) -> Bool {
    let (continuation, isGivenUp, task) = state.withLock {
      state -> (Continuation?, Bool, Task<Void, Never>?) in
      guard let continuation = state.waiters.removeValue(forKey: ObjectIdentifier(waiter)) else {
        return (nil, false, nil)
      }
      waiter.isDetached.store(true, ordering: .relaxed)
      if !isOutdated || !state.waiters.isEmpty {
        state.isInBackground = true
        return (continuation, false, nil)
      }
      state.isAbandoned = true
      return (continuation, true, state.task)
    }
    continuation?.resume(throwing: SoftTimeLimit())
    if let task { cancel(task) }
    return isGivenUp
  }

  /// Abandons the load if no caller waits for it.
  ///
  /// - Returns: whether it abandoned the load.
  @discardableResult
  func leaveBackground(_ cancel: Cancelling = { $0.cancel() }) -> Bool {
    let (isGivenUp, task) = state.withLock { state -> (Bool, Task<Void, Never>?) in
      if !state.isInBackground || state.outcome != nil { return (false, nil) }
      state.isInBackground = false
      if !state.waiters.isEmpty { return (false, nil) }
      state.isAbandoned = true
      noteWrite()
      return (true, state.task)
    }
    if let task { cancel(task) }
    return isGivenUp
  }

  /// Sets the outcome and resumes all waiters, unless there already is an outcome.
  ///
  /// - Parameter prepare: called before any waiter continues, unless there already is an outcome.
  func finish(
    _ outcome: Result<Value, any Error>, _ cancel: Cancelling = { _ in },
    preparing prepare: (_ isUnheard: Bool) -> Void = { _ in }
  ) {
    let ended = state.withLock {
      state -> ([ObjectIdentifier: Continuation?], Task<Void, Never>?, Bool)? in
      if state.outcome != nil { return nil }
      state.outcome = outcome
      let isUnheard = state.waiters.isEmpty && !state.isAbandoned
      return (exchange(&state.waiters, with: [:]), exchange(&state.task, with: nil), isUnheard)
    }
    guard let (waiters, task, isUnheard) = ended else { return }
    prepare(isUnheard)
    for case .some(let continuation) in waiters.values { continuation.resume(with: outcome) }
    // Last, because cancelling runs the loader's handlers.
    if let task { cancel(task) }
  }
}

/// Thrown when a waiter reaches its soft time limit.
struct SoftTimeLimit: Error {}
