internal import CairnLibC

/// State that is accessible only under its lock.
///
/// Uses a `pthread_mutex_t` rather than the standard library's `Mutex`: on Linux without
/// contention, it took half the time, and Thread Sanitizer understands it.
@safe
package struct Lock<State: ~Copyable>: ~Copyable, @unchecked Sendable {
  // SAFETY: made in `init` and freed in `deinit`. Its address never changes, as a mutex requires.
  private let memory: LockMemory<State>
  private let condition: UnsafeMutablePointer<pthread_cond_t>?

  /// - Parameters:
  ///   - waits: whether threads will wait for the state to change.
  ///   - isOfProcess: whether the lock is a global. No child of fork(2) then inherits it from
  ///     another thread. No other lock of this kind may be taken under it.
  package init(_ initial: consuming State, waits: Bool = false, isOfProcess: Bool = false) {
    unsafe memory = LockMemory(
      initial, at: alignedMemory(byteCount: LockMemory<State>.byteCount))
    if waits {
      let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
      unsafe makeCondition(condition)
      unsafe self.condition = unsafe condition
    } else {
      unsafe condition = nil
    }
    if isOfProcess { unsafe Forks.shared.hold(memory.mutex) }
  }

  deinit {
    if let condition = unsafe condition {
      unsafe pthread_cond_destroy(condition)
      unsafe condition.deallocate()
    }
    memory.deinitialize()
    unsafe freeMemory(memory.mutex)
  }

  /// Runs `body` with exclusive access to the state.
  @inline(__always)
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try memory.withLock(body)
  }

  /// Takes the lock. The caller ends the hold, and keeps the lock alive until then.
  @inline(__always)
  package func hold() -> LockHold<State> {
    unsafe pthread_mutex_lock(memory.mutex)
    return unsafe LockHold(memory.mutex, memory.state)
  }

  /// How many times to try a lock that another thread holds: for about as long as a short append
  /// takes.
  private static var tryCount: Int { 2000 }

  /// Takes the lock unless another thread keeps holding it.
  package func holdIfFree() -> LockHold<State>? {
    var count = 0
    while unsafe pthread_mutex_trylock(memory.mutex) != 0 {
      count += 1
      if count == Self.tryCount { return nil }
    }
    return unsafe LockHold(memory.mutex, memory.state)
  }

  /// Whether a thread held the lock at the time of the call.
  package var isHeld: Bool {
    guard unsafe pthread_mutex_trylock(memory.mutex) == 0 else { return true }
    unsafe pthread_mutex_unlock(memory.mutex)
    return false
  }

  /// Runs `body` with exclusive access to the state until it returns a value. After each `nil`, the
  /// call releases the lock until another thread calls `wakeAll` or the system wakes this one
  /// spuriously.
  ///
  /// The access to the state ends before each wait, so that no part of the state stays in a
  /// register.
  package func waitUntil<Result>(_ body: (inout State) -> Result?) -> Result {
    guard let condition = unsafe condition else { preconditionFailure("made without waits") }
    unsafe pthread_mutex_lock(memory.mutex)
    defer { unsafe pthread_mutex_unlock(memory.mutex) }
    while true {
      if let result = unsafe body(&memory.state.pointee) { return result }
      unsafe pthread_cond_wait(condition, memory.mutex)
    }
  }

  /// What `waitUntil(step:)` does next.
  package enum Step<Result> {
    case done(Result)
    /// Run again when another thread calls `wakeAll`, or after the duration.
    case wait(Duration?)
  }

  /// Runs `body` with exclusive access to the state until it is done. Releases the lock during each
  /// wait.
  package func waitUntil<Result>(step body: (inout State) -> Step<Result>) -> Result {
    guard let condition = unsafe condition else { preconditionFailure("made without waits") }
    unsafe pthread_mutex_lock(memory.mutex)
    defer { unsafe pthread_mutex_unlock(memory.mutex) }
    while true {
      switch unsafe body(&memory.state.pointee) {
      case .done(let result): return result
      case .wait(nil): unsafe pthread_cond_wait(condition, memory.mutex)
      case .wait(let duration?):
        unsafe wait(condition, memory.mutex, milliseconds: max(0, duration.milliseconds))
      }
    }
  }

  /// Wakes all waiting threads.
  package func wakeAll() {
    guard let condition = unsafe condition else { preconditionFailure("made without waits") }
    unsafe pthread_cond_broadcast(condition)
  }
}

/// Exclusive access to the state of a lock, until `end`.
@safe
package struct LockHold<State: ~Copyable>: ~Copyable {
  // SAFETY: the lock is held, and its owner stays alive.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let pointer: UnsafeMutablePointer<State>

  @inline(__always)
  fileprivate init(
    _ mutex: UnsafeMutablePointer<pthread_mutex_t>, _ pointer: UnsafeMutablePointer<State>
  ) {
    unsafe self.mutex = unsafe mutex
    unsafe self.pointer = unsafe pointer
  }

  package var state: State {
    @inline(__always) unsafeAddress { unsafe UnsafePointer(pointer) }
    @inline(__always) nonmutating unsafeMutableAddress { unsafe pointer }
  }

  /// Releases the lock.
  @inline(__always)
  package func end() { unsafe pthread_mutex_unlock(mutex) }
}

/// A mutex and its state, next to each other. The owner of the memory keeps it alive.
@safe
package struct LockMemory<State: ~Copyable> {
  // SAFETY: the state is touched only between lock and unlock.
  fileprivate let mutex: UnsafeMutablePointer<pthread_mutex_t>
  fileprivate let state: UnsafeMutablePointer<State>

  fileprivate static var byteCount: Int { stateOffset + MemoryLayout<State>.size }
  private static var stateOffset: Int {
    let alignment = MemoryLayout<State>.alignment
    return (mutexByteCount + alignment - 1) / alignment * alignment
  }

  /// The lock in this memory.
  @inline(__always)
  fileprivate init(at memory: UnsafeMutableRawPointer) {
    unsafe mutex = memory.assumingMemoryBound(to: pthread_mutex_t.self)
    unsafe state = unsafe (memory + Self.stateOffset).assumingMemoryBound(to: State.self)
  }

  /// A new lock in this memory.
  fileprivate init(_ initial: consuming State, at memory: UnsafeMutableRawPointer) {
    unsafe memory.bindMemory(to: pthread_mutex_t.self, capacity: 1)
    unsafe (memory + Self.stateOffset).bindMemory(to: State.self, capacity: 1)
    unsafe self.init(at: memory)
    unsafe pthread_mutex_init(mutex, nil)
    unsafe state.initialize(to: initial)
  }

  fileprivate func deinitialize() {
    unsafe state.deinitialize(count: 1)
    unsafe pthread_mutex_destroy(mutex)
  }

  /// Runs `body` with exclusive access to the state.
  @inline(__always)
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return try unsafe body(&state.pointee)
  }
}

/// Many adjacent locks, each on cache lines of its own. Its memory returns to the system. Separate
/// locks take three times as much.
@safe
package final class LockArray<State: ~Copyable>: @unchecked Sendable {
  // SAFETY: the address never changes, and each lock uses only its own part.
  private let base: UnsafeMutableRawPointer
  private let count: Int
  package static var stride: Int { (LockMemory<State>.byteCount + 63) & ~63 }

  package init(count: Int, _ initial: (Int) -> State) {
    precondition(MemoryLayout<State>.alignment <= 64)
    self.count = count
    unsafe base = pageMemory(byteCount: count * Self.stride)
    for index in 0..<count {
      _ = unsafe LockMemory(initial(index), at: base + index * Self.stride)
    }
  }

  deinit {
    for index in 0..<count { self[index].deinitialize() }
    unsafe freePages(base, byteCount: count * Self.stride)
  }

  @inline(__always)
  package subscript(index: Int) -> LockMemory<State> {
    precondition(index >= 0 && index < count)
    return unsafe LockMemory(at: base + index * Self.stride)
  }
}
