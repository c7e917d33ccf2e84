internal import CairnStore

/// Calls a loader once for many keys. Each key has its own flight.
///
/// 1. The loader begins once every key is decided: its flight is new and waits for the loader, or the
///    call joined another flight, or needs none.
/// 2. The loader is called once, with the keys whose flights wait. A flight that asks later,
///   because a removal outdated its first answer, gets a call of its own.
/// 3. The loader is cancelled when no flight waits for it any more.
final class BulkLoad<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  typealias Loader = @Sendable (_ keys: [Key]) async throws -> [Key: Value]

  private struct State {
    var undecided: Set<Key>
    var wanted: [Key] = []
    /// The keys whose flights wait.
    var waiting: Set<Key> = []
    var task: Task<[Key: Value], any Error>?
    var continuations: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Lock<State>
  private let node = LoadNode()
  private let load: Loader

  private init(_ keys: Set<Key>, _ load: @escaping Loader) {
    state = Lock(State(undecided: keys))
    self.load = load
  }

  /// Loads the values of many keys.
  ///
  /// - Parameter value: waits for the flight of one key, whose load calls `value(of:for:)`. It calls
  ///   `decide` if it joins another flight.
  /// - Returns: the values of the keys that have one.
  /// - Throws: the first error, once every other key is loaded and kept.
  static func values(
    of keys: [Key], _ load: @escaping Loader,
    _ value: @escaping @Sendable (Key, BulkLoad) async throws -> Value?
  ) async throws -> [Key: Value] {
    let keys = Set(keys)
    let bulk = BulkLoad(keys, load)
    let (values, failure) = await withTaskGroup(of: (Key, Result<Value?, any Error>).self) {
      group -> ([Key: Value], (any Error)?) in
      for key in keys {
        group.addTask {
          // However it ends.
          defer { bulk.decide(key) }
          do { return (key, .success(try await value(key, bulk))) } catch {
            return (key, .failure(error))
          }
        }
      }
      var values: [Key: Value] = [:]
      var failure: (any Error)?
      for await (key, result) in group {
        switch result {
        case .success(let value): values[key] = value
        case .failure(let error): failure = failure ?? error
        }
      }
      return (values, failure)
    }
    if let failure { throw failure }
    return values
  }

  /// Notes that the loader need not wait for a key any longer.
  func decide(_ key: Key) { decide(key, isWanted: false) }

  private func decide(_ key: Key, isWanted: Bool) {
    let continuations = state.withLock { state -> [CheckedContinuation<Void, Never>] in
      guard state.undecided.remove(key) != nil else { return [] }
      if isWanted { state.wanted.append(key) }
      if !state.undecided.isEmpty { return [] }
      if !state.waiting.isEmpty { state.task = start(state.wanted) }
      return exchange(&state.continuations, with: [])
    }
    for continuation in continuations { continuation.resume() }
  }

  private func start(_ keys: [Key]) -> Task<[Key: Value], any Error> {
    Task(executorPreference: LoadExecutor.shared) { [load, node] in
      try await LoadNode.$starter.withValue(node) { try await load(keys) }
    }
  }

  /// The loaded value of a key, or `nil` if the loader returned none. Called by the key's flight.
  func value(of key: Key, for flight: LoadNode) async throws -> Value? {
    guard enter(key) else {
      try Task.checkCancellation()
      return try await load([key])[key]
    }
    defer { leave(key) }
    guard LoadGraph.add(flight, waitsFor: node) else { throw StoreError.circularLoad }
    defer { LoadGraph.remove(flight, waitsFor: node) }
    decide(key, isWanted: true)
    await withCheckedContinuation { continuation in
      let isDecided = state.withLock { state in
        if !state.undecided.isEmpty { state.continuations.append(continuation) }
        return state.undecided.isEmpty
      }
      if isDecided { continuation.resume() }
    }
    guard let task = state.withLock({ $0.task }) else { throw CancellationError() }
    return try await withTaskCancellationHandler {
      try await task.value[key]
    } onCancel: {
      leave(key)
    }
  }

  /// - Returns: `false` if the loader does not wait for the key.
  private func enter(_ key: Key) -> Bool {
    state.withLock { state in
      guard state.undecided.contains(key) else { return false }
      state.waiting.insert(key)
      return true
    }
  }

  private func leave(_ key: Key) {
    let task = state.withLock { state in
      state.waiting.remove(key) != nil && state.waiting.isEmpty ? state.task : nil
    }
    // Runs the loader's handlers. Does nothing if the loader has ended.
    task?.cancel()
  }
}
