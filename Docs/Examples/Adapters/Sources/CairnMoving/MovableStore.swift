import Cairn
import Foundation
import Synchronization

/// A store that can move to another directory, such as one on another disk, while it is read and written.
///
///     let users = MovableStore(try await Store(path: "/disk1/users.cairn"))
///     try await users.write { try await $0.setValue("alice", forKey: "user/17") }
///     let name = try users.read { try $0.value(forKey: "user/17") }
///     try await users.move(to: "/disk2/users.cairn")
public final class MovableStore: Sendable {
  private struct State {
    var store: Store
    var writerCount = 0
    var isPaused = false
    /// Writers that wait for the end of the pause.
    var waiting: [CheckedContinuation<Store, Never>] = []
    /// The mover, which waits for the last writer.
    var drained: CheckedContinuation<Void, Never>?
  }

  private let state: Mutex<State>
  private let isMoving = Atomic(false)
  private let configuration: StoreConfiguration

  /// - Parameter configuration: of the store, wherever it is.
  public init(_ store: Store, configuration: StoreConfiguration = StoreConfiguration()) {
    state = Mutex(State(store: store))
    self.configuration = configuration
  }

  /// Where the store is.
  public var path: String { store.path }

  private var store: Store { state.withLock { $0.store } }

  /// Calls `body` with the store, to read. It may be called again, if the store has moved meanwhile.
  public func read<Result>(_ body: (Store) throws -> Result) throws -> Result {
    while true {
      let store = store
      do { return try body(store) } catch StoreError.closed(path: _) where self.store !== store {
        continue
      }
    }
  }

  /// Calls `body` with the store, to write. It waits while a move comes to its end, for milliseconds. Use the
  /// store in `body` only; versions from another call are of no use after a move.
  public nonisolated(nonsending) func write<Result>(
    _ body: nonisolated(nonsending) (Store) async throws -> Result
  ) async throws -> Result {
    let store = await withCheckedContinuation { continuation in
      let store = state.withLock { state -> Store? in
        if state.isPaused {
          state.waiting.append(continuation)
          return nil
        }
        state.writerCount += 1
        return state.store
      }
      if let store { continuation.resume(returning: store) }
    }
    defer {
      state.withLock { state in
        state.writerCount -= 1
        return state.writerCount == 0 ? state.drained.take() : nil
      }?.resume()
    }
    return try await body(store)
  }

  /// Moves the store to another path. Writes wait during the last comparison.
  ///
  /// If it throws, or the process dies, the store is where it was, with all that was written.
  ///
  /// - Parameters:
  ///   - replacing: whether what is at the path is removed first, such as what a move has left that did not end.
  ///   - record: remembers the new place, durably. The move is done when it returns.
  /// - Throws: `StoreError`, such as a full disk; `StoreIsMoving`; what `record` throws.
  public func move(
    to path: String, replacing: Bool = false, record: () async throws -> Void = {}
  ) async throws {
    if isMoving.exchange(true, ordering: .acquiring) { throw StoreIsMoving() }
    defer { isMoving.store(false, ordering: .releasing) }
    let source = store
    if path == source.path { return }
    if replacing, FileManager.default.fileExists(atPath: path) {
      try FileManager.default.removeItem(atPath: path)
    }
    var copy = try await StoreCopy.begin(of: source, at: path, configuration)
    do {
      // Each time, less was written meanwhile.
      for _ in 0..<8 { if try await copy.catchUp() <= 100 { break } }
      await pauseWrites()
      _ = try await copy.catchUp()
      try await copy.store.sync()
      try await record()
    } catch {
      resumeWrites(in: source)
      try? await copy.end(removing: copy.store)
      throw error
    }
    resumeWrites(in: copy.store)
    try await copy.end(removing: source)
  }

  /// Closes the store. Call it when the last read and write have ended.
  public func close() async throws { try await store.close() }

  /// Lets no write begin, and waits for those that have.
  private func pauseWrites() async {
    await withCheckedContinuation { continuation in
      let isDrained = state.withLock { state in
        state.isPaused = true
        if state.writerCount > 0 { state.drained = continuation }
        return state.writerCount == 0
      }
      if isDrained { continuation.resume() }
    }
  }

  private func resumeWrites(in store: Store) {
    let waiting = state.withLock { state in
      state.store = store
      state.isPaused = false
      state.writerCount += state.waiting.count
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume(returning: store) }
  }
}

/// Another move of the store is under way.
public struct StoreIsMoving: Error {}
