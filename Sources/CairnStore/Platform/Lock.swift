#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// State that is accessible only under its lock.
///
/// Uses a `pthread_mutex_t` rather than the standard library's `Mutex`: on Linux without
/// contention, it took half the time, and Thread Sanitizer understands it.
@safe
package struct Lock<State: ~Copyable>: ~Copyable, @unchecked Sendable {
  // SAFETY: one allocation each, made in `init` and freed in `deinit`. Their addresses never
  // change, as a mutex requires. The state is touched only between lock and unlock.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let state: UnsafeMutablePointer<State>
  private let condition: UnsafeMutablePointer<pthread_cond_t>?
  /// The block that contains the mutex and the state, if they have no memory of their own.
  private let block: LockBlock<State>?

  /// Makes one of many adjacent locks.
  package init(_ initial: consuming State, in block: LockBlock<State>, at index: Int) {
    let memory = unsafe block.memory(at: index)
    unsafe mutex = memory.bindMemory(to: pthread_mutex_t.self, capacity: 1)
    unsafe state = unsafe (memory + LockBlock<State>.stateOffset)
      .bindMemory(to: State.self, capacity: 1)
    unsafe pthread_mutex_init(mutex, nil)
    unsafe state.initialize(to: initial)
    unsafe condition = nil
    self.block = block
  }

  /// - Parameters:
  ///   - waits: whether threads will wait for the state to change.
  ///   - isOfProcess: whether the lock is a global. No child of fork(2) then inherits it from
  ///     another thread. No other lock of this kind may be taken under it.
  package init(_ initial: consuming State, waits: Bool = false, isOfProcess: Bool = false) {
    // The mutex and the state are adjacent, on cache lines of their own, so that neighbours in an
    // array of locks do not slow each other.
    let memory = unsafe alignedMemory(byteCount: LockBlock<State>.byteCount)
    block = nil
    unsafe mutex = memory.bindMemory(to: pthread_mutex_t.self, capacity: 1)
    unsafe state = unsafe (memory + LockBlock<State>.stateOffset)
      .bindMemory(to: State.self, capacity: 1)
    unsafe pthread_mutex_init(mutex, nil)
    unsafe state.initialize(to: initial)
    if waits {
      let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
      // Waits use the monotonic clock, because it cannot be set.
      var attributes = pthread_condattr_t()
      unsafe pthread_condattr_init(&attributes)
      unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
      unsafe pthread_cond_init(condition, &attributes)
      unsafe pthread_condattr_destroy(&attributes)
      unsafe self.condition = unsafe condition
    } else {
      unsafe condition = nil
    }
    if isOfProcess { unsafe Forks.shared.hold(mutex) }
  }

  deinit {
    if let condition = unsafe condition {
      unsafe pthread_cond_destroy(condition)
      unsafe condition.deallocate()
    }
    unsafe state.deinitialize(count: 1)
    unsafe pthread_mutex_destroy(mutex)
    if block == nil { unsafe freeMemory(mutex) }
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

  /// Takes the lock. The caller ends the hold, and keeps the lock alive until then.
  @inline(__always)
  package func hold() -> LockHold<State> {
    unsafe pthread_mutex_lock(mutex)
    return unsafe LockHold(mutex, state)
  }

  /// How many times to try a lock that another thread holds: for about as long as a short append
  /// takes.
  private static var tryCount: Int { 2000 }

  /// Takes the lock unless another thread keeps holding it.
  package func holdIfFree() -> LockHold<State>? {
    var count = 0
    while unsafe pthread_mutex_trylock(mutex) != 0 {
      count += 1
      if count == Self.tryCount { return nil }
    }
    return unsafe LockHold(mutex, state)
  }

  /// Whether a thread held the lock at the time of the call.
  package var isHeld: Bool {
    guard unsafe pthread_mutex_trylock(mutex) == 0 else { return true }
    unsafe pthread_mutex_unlock(mutex)
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
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    while true {
      if let result = unsafe body(&state.pointee) { return result }
      unsafe pthread_cond_wait(condition, mutex)
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
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    while true {
      switch unsafe body(&state.pointee) {
      case .done(let result): return result
      case .wait(nil): unsafe pthread_cond_wait(condition, mutex)
      case .wait(let duration?):
        var deadline = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &deadline)
        let nanoseconds =
          Int64(deadline.tv_nsec) + Int64(clamping: max(0, duration.milliseconds) % 1000)
          * 1_000_000
        let seconds = min(max(0, duration.milliseconds) / 1000, 1 << 32)
        deadline.tv_sec += Int(seconds + nanoseconds / 1_000_000_000)
        deadline.tv_nsec = Int(nanoseconds % 1_000_000_000)
        _ = unsafe pthread_cond_timedwait(condition, mutex, &deadline)
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

/// Memory for many adjacent locks, each on separate cache lines. The last lock that is freed also
/// frees the block, and the memory returns to the system. Separate small locks take three times as
/// much memory.
@safe
package final class LockBlock<State: ~Copyable>: @unchecked Sendable {
  // SAFETY: the address never changes, and each lock uses only its own part.
  private let base: UnsafeMutableRawPointer
  private let count: Int

  /// The offset of the state after the mutex.
  fileprivate static var stateOffset: Int {
    let alignment = MemoryLayout<State>.alignment
    return unsafe (MemoryLayout<pthread_mutex_t>.size + alignment - 1) / alignment * alignment
  }
  fileprivate static var byteCount: Int { stateOffset + MemoryLayout<State>.size }
  package static var stride: Int { (byteCount + 63) & ~63 }

  package init(count: Int) {
    precondition(MemoryLayout<State>.alignment <= 64)
    self.count = count
    unsafe base = pageMemory(byteCount: count * Self.stride)
  }

  deinit { unsafe freePages(base, byteCount: count * Self.stride) }

  fileprivate func memory(at index: Int) -> UnsafeMutableRawPointer {
    precondition(index >= 0 && index < count)
    return unsafe base + index * Self.stride
  }
}
