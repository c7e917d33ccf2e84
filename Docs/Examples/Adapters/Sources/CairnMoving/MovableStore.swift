import Cairn
import Foundation
import StoreCopying
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
    /// The store for reads.
    var store: Store
    /// Why writes fail, or `nil` if they go to `store`.
    var uncertainty: MoveIsUncertain?
    /// The numbers of the writes that have begun.
    var writes: Set<UInt64> = []
    var isPaused = false
    /// Writes that wait for the end of the pause.
    var waiting: [UInt64: CheckedContinuation<Store, any Error>] = [:]
    /// The mover, which waits for the last write.
    var drained: CheckedContinuation<Void, Never>?
  }

  private static let writeCount = Atomic<UInt64>(0)
  /// The numbers of the writes that have called this task's code.
  @TaskLocal private static var outerWrites: [UInt64] = []

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
  /// finishes, except within another write. Use the store only within `body`. Entry versions from
  /// other calls are invalid after a move.
  ///
  /// - Throws: the errors of `body`; `MoveIsUncertain` after a move that threw it.
  public nonisolated(nonsending) func write<Result>(
    _ body: nonisolated(nonsending) (Store) async throws -> Result
  ) async throws -> Result {
    let number = Self.writeCount.add(1, ordering: .relaxed).newValue
    let store = try await withCheckedThrowingContinuation { continuation in
      let result = state.withLock { state -> Swift.Result<Store, any Error>? in
        if let uncertainty = state.uncertainty { return .failure(uncertainty) }
        // The mover waits for the outer write, so the inner one must not wait for the mover. A task
        // may outlive the write that created it.
        if state.isPaused, state.writes.isDisjoint(with: Self.outerWrites) {
          state.waiting[number] = continuation
          return nil
        }
        state.writes.insert(number)
        return .success(state.store)
      }
      if let result { continuation.resume(with: result) }
    }
    defer {
      state.withLock { state in
        state.writes.remove(number)
        return state.writes.isEmpty ? state.drained.take() : nil
      }?.resume()
    }
    return try await Self.$outerWrites.withValue(Self.outerWrites + [number]) {
      try await body(store)
    }
  }

  /// Moves the store to another path, unless it is there already, however the path is spelled.
  /// Writes wait during the last comparison.
  ///
  /// If this call throws, or the process dies during it, the store stays at its old path with all
  /// writes. The exception is `MoveIsUncertain`.
  ///
  /// - Parameters:
  ///   - replacing: whether to remove first what is at the path, such as the remains of an
  ///     unfinished move.
  ///   - record: records the new place durably. The move takes effect when `record` returns. Must
  ///     not write to the store. If it cannot know whether the place is recorded, it throws
  ///     `MoveIsUncertain` or `StoreError.durabilityUnknown`.
  /// - Returns: the old directory, if the store has moved but the directory could not be removed.
  /// - Throws: `StoreError`, for example if the disk is full; `MoveError`; `MoveIsUncertain`; the
  ///   errors of `record`.
  @discardableResult
  public func move(
    to path: String, replacing: Bool = false, record: () async throws -> Void = {}
  ) async throws -> Remains? {
    if isMoving.exchange(true, ordering: .acquiring) { throw MoveError.isMoving }
    defer { isMoving.store(false, ordering: .releasing) }
    let source = try state.withLock { state in
      if let uncertainty = state.uncertainty { throw uncertainty }
      if !state.writes.isDisjoint(with: Self.outerWrites) { throw MoveError.isWithinWrite }
      return state.store
    }
    if DirectoryID.isSame(path, source.path) { return nil }
    if DirectoryID.overlaps(path, source.path) { throw MoveError.pathsOverlap }
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
      do { try await record() } catch StoreError.durabilityUnknown(let cause) {
        throw MoveIsUncertain(cause: StoreError.durabilityUnknown(cause: cause))
      }
    } catch let error as MoveIsUncertain {
      // Keep both directories, and let no write make them differ.
      resumeWrites(in: source, error)
      await copy.end()
      throw error
    } catch {
      resumeWrites(in: source)
      try? await copy.end(removing: copy.store)
      throw error
    }
    resumeWrites(in: copy.store)
    // The store has moved, so the call must not throw any more.
    do { try await copy.end(removing: source) } catch {
      return Remains(path: source.path, error: error)
    }
    return nil
  }

  /// Closes the store. Call it after the last read and write have ended.
  public func close() async throws { try await store.close() }

  /// Prevents writes from beginning, and waits for those that have begun.
  private func pauseWrites() async {
    await withCheckedContinuation { continuation in
      let isDrained = state.withLock { state in
        state.isPaused = true
        if !state.writes.isEmpty { state.drained = continuation }
        return state.writes.isEmpty
      }
      if isDrained { continuation.resume() }
    }
  }

  private func resumeWrites(in store: Store, _ uncertainty: MoveIsUncertain? = nil) {
    let waiting = state.withLock { state in
      state.store = store
      state.uncertainty = uncertainty
      state.isPaused = false
      if uncertainty == nil { state.writes.formUnion(state.waiting.keys) }
      defer { state.waiting = [:] }
      return state.waiting.values
    }
    for continuation in waiting {
      if let uncertainty {
        continuation.resume(throwing: uncertainty)
      } else {
        continuation.resume(returning: store)
      }
    }
  }
}
