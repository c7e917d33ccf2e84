internal import CairnStore
internal import Synchronization

/// Loads that are under way, one for each key, however many want it.
///
/// A load runs in a task of its own, which has the priority and the task-local values of who came first
/// and is not cancelled with it. Who is cancelled leaves at once; when the last one has left, the load is
/// cancelled. An error is told to all who wait, and forgotten. No lock is held while anything of the
/// caller's runs.
@usableFromInline
final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct State {
    var flights: [Key: Flight<Value>] = [:]
    var statistics = LoadStatistics()
  }

  private let state = Lock(State())
  /// How many flights there are.
  private let activeCount = Atomic(0)
  /// How many of them, or of those that were taken out, are about to keep a value.
  private let keepingCount = Atomic(0)

  @usableFromInline init() {}

  var statistics: LoadStatistics { state.withLock { $0.statistics } }

  /// Whether anything is being loaded.
  var isActive: Bool {
    activeCount.load(ordering: .acquiring) != 0 || keepingCount.load(ordering: .acquiring) != 0
  }

  /// For tests: the loads under way.
  var count: Int { activeCount.load(ordering: .relaxed) }

  // MARK: Writes

  /// To be called when a key is written or removed, before that happens: what is being loaded for it is
  /// not kept then, and nobody joins that load any more.
  ///
  /// - Returns: `false` where no load can be about to keep a value of the key.
  @usableFromInline
  @discardableResult
  func noteWrite(_ key: Key) -> Bool {
    if !isActive { return false }
    return state.withLock { state in
      guard let flight = state.flights[key] else {
        return keepingCount.load(ordering: .acquiring) > 0
      }
      flight.noteWrite()
      take(flight, key, from: &state)
      return true
    }
  }

  /// The same for all keys.
  func noteRemovalOfAll() {
    if !isActive { return }
    let flights = state.withLock { state in
      for flight in state.flights.values { flight.noteWrite() }
      activeCount.store(0, ordering: .releasing)
      return exchange(&state.flights, with: [:])
    }
    // What they hold goes out of the lock.
    withExtendedLifetime(flights) {}
  }

  /// Runs `body`, which keeps a value that was loaded unless the flight is outdated.
  func keeping<Result, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    keepingCount.add(1, ordering: .sequentiallyConsistent)
    defer { keepingCount.subtract(1, ordering: .sequentiallyConsistent) }
    return try body()
  }

  /// Counts a value that was loaded and not kept.
  func noteOutdated() { state.withLock { $0.statistics.outdatedCount += 1 } }

  /// Counts a value that was loaded and could not be kept.
  func noteUnkept() { state.withLock { $0.statistics.unkeptCount += 1 } }

  // MARK: Loading

  /// Waits for a key's value: the one that is being loaded, or else one that is loaded now.
  ///
  /// - Parameters:
  ///   - found: looks once more whether there is a value: a load may have ended since the caller looked.
  ///   - load: loads the value, and keeps it unless the flight is outdated by then.
  func value(
    forKey key: Key, found: @escaping @Sendable () throws -> Value?,
    load: @escaping @Sendable (Flight<Value>) async throws -> Value
  ) async throws -> Value {
    try Task.checkCancellation()
    let waiter = Flight<Value>.Waiter()
    let (flight, isNew) = enter(key, waiter)
    let waiting = LoadNode.waiting
    if let waiting, !LoadGraph.add(waiting, waitsFor: flight.node) {
      leave(flight, waiter, key)
      throw CacheError.circularLoad
    }
    defer { if let waiting { LoadGraph.remove(waiting, waitsFor: flight.node) } }
    if isNew {
      let task = Task(executorPreference: LoadExecutor.shared) {
        await self.run(flight, key, found, load)
      }
      flight.start(task, priority: Task.currentPriority)
    } else {
      flight.escalate(to: Task.currentPriority)
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { flight.wait(waiter, $0) }
    } onCancel: {
      leave(flight, waiter, key)
    }
  }

  private func enter(_ key: Key, _ waiter: Flight<Value>.Waiter) -> (Flight<Value>, isNew: Bool) {
    state.withLock { state in
      if let flight = state.flights[key], flight.enter(waiter) {
        state.statistics.joinedCount += 1
        return (flight, false)
      }
      let flight = Flight<Value>()
      _ = flight.enter(waiter)
      if state.flights.updateValue(flight, forKey: key) == nil {
        activeCount.add(1, ordering: .acquiringAndReleasing)
      }
      return (flight, true)
    }
  }

  private func leave(_ flight: Flight<Value>, _ waiter: Flight<Value>.Waiter, _ key: Key) {
    if flight.leave(waiter) { remove(flight, key, isCancelled: true) }
  }

  private func remove(_ flight: Flight<Value>, _ key: Key, isCancelled: Bool) {
    state.withLock { state in
      if isCancelled { state.statistics.cancelledCount += 1 }
      take(flight, key, from: &state)
    }
  }

  /// Takes a flight out, after which nobody joins it.
  private func take(_ flight: Flight<Value>, _ key: Key, from state: inout State) {
    guard state.flights[key] === flight else { return }
    state.flights[key] = nil
    activeCount.subtract(1, ordering: .acquiringAndReleasing)
  }

  private func run(
    _ flight: Flight<Value>, _ key: Key, _ found: @Sendable () throws -> Value?,
    _ load: @Sendable (Flight<Value>) async throws -> Value
  ) async {
    let outcome: Result<Value, any Error>
    do {
      if let value = try found() {
        outcome = .success(value)
      } else {
        state.withLock { $0.statistics.startedCount += 1 }
        do {
          outcome = .success(
            try await LoadNode.$starter.withValue(flight.node) { try await load(flight) })
        } catch {
          state.withLock { $0.statistics.failedCount += 1 }
          throw error
        }
      }
    } catch {
      outcome = .failure(error)
    }
    // First out of the table: who comes now looks again, and finds the value or loads it anew.
    remove(flight, key, isCancelled: false)
    flight.finish(outcome)
  }
}
