import Cairn
import Foundation
import Synchronization

/// A store that can move to another directory, for example on another disk, while it is read and
/// written.
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

  /// - Parameter configuration: the configuration for the store in each directory.
  public init(_ store: Store, configuration: StoreConfiguration = StoreConfiguration()) {
    state = Mutex(State(store: store))
    self.configuration = configuration
  }

  /// The current path of the store.
  public var path: String { store.path }

  private var store: Store { state.withLock { $0.store } }

  /// Calls `body` with the store, for reading. Calls `body` again if the store moves meanwhile.
  public func read<Result>(_ body: (Store) throws -> Result) throws -> Result {
    while true {
      let store = store
      do { return try body(store) } catch StoreError.closed(path: _) where self.store !== store {
        continue
      }
    }
  }

  /// Calls `body` with the store, for writing. The call waits a few milliseconds while a move
  /// finishes. Use the store only within `body`. Entry versions from other calls are invalid after
  /// a move.
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
  /// If this call throws, or the process dies during it, the store stays at its old path with all
  /// writes.
  ///
  /// - Parameters:
  ///   - replacing: whether to remove first what is at the path, such as the remains of an
  ///     unfinished move.
  ///   - record: records the new place durably. The move takes effect when `record` returns.
  /// - Throws: `StoreError`, for example if the disk is full; `StoreIsMoving`; the errors of
  ///   `record`.
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
      // Each pass is shorter than the one before, so fewer writes happen meanwhile.
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

  /// Closes the store. Call it after the last read and write have ended.
  public func close() async throws { try await store.close() }

  /// Prevents writes from beginning, and waits for those that have begun.
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

/// Another move of the store is in progress.
public struct StoreIsMoving: Error {}
