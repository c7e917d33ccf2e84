internal import CairnLibC
internal import CairnStore

/// State that can be reached only under its lock, like the store's `Lock`.
///
/// A separate type, because the caches are generic. Their code is specialised in the module that
/// uses them, and that module must not see the C library.
@usableFromInline
@safe
struct CacheLock<State: ~Copyable>: ~Copyable, @unchecked Sendable {
  // SAFETY: one allocation each, made in `init` and freed in `deinit`. Their addresses never
  // change, as a mutex requires. The state is touched only between lock and unlock.
  @usableFromInline let mutex: UnsafeMutableRawPointer
  @usableFromInline let state: UnsafeMutablePointer<State>
  @usableFromInline let readers: SharedReaders

  /// - Parameter sharing: when reads may run in parallel; see `SharedReaders`.
  @inlinable
  init(_ initial: consuming State, sharing: SharedReaders.Sharing) {
    readers = SharedReaders(sharing)
    unsafe mutex = makeMutex()
    unsafe state = .allocate(capacity: 1)
    unsafe state.initialize(to: initial)
  }

  @inlinable
  deinit {
    unsafe state.deinitialize(count: 1)
    unsafe state.deallocate()
    unsafe destroyMutex(mutex)
  }

  /// Runs `body` with exclusive access to the state.
  ///
  /// - Parameter isRead: whether more reads that may be shared are likely to follow.
  @inlinable
  @inline(__always)
  func withLock<Result: ~Copyable>(
    forReading isRead: Bool = false, _ body: (inout State) -> Result
  ) -> Result {
    unsafe readers.lock(mutex, forReading: isRead)
    defer { unsafe readers.unlock(mutex) }
    return unsafe body(&state.pointee)
  }

  /// Lets waiting threads take the lock. Call between two groups of a long operation: a thread that
  /// retakes a mutex at once keeps every other thread out.
  func giveWay() {
    // A waiting thread needs about this long to wake up.
    if readers.waitingCount > 0 { pause(for: .microseconds(50)) }
  }
}

/// State that several threads may read at the same time.
@usableFromInline
protocol SharedState: ~Copyable {
  associatedtype Key
  associatedtype Query
  associatedtype Found

  /// The result of a query for a key, or `nil` if the query needs the lock. May change only words,
  /// atomically.
  func sharedFind(_ key: Key, _ query: Query) -> Found?
}

extension CacheLock where State: SharedState & ~Copyable {
  /// Looks up a key in parallel with other readers, if that is possible without waiting.
  ///
  /// - Returns: what was found, which counts as a hit, or `nil` if the caller needs the lock.
  @inlinable
  @inline(__always)
  func sharedFind(_ key: State.Key, _ query: State.Query) -> State.Found? {
    guard let stripe = readers.enter() else { return nil }
    // SAFETY: no thread changes the state while a reader is inside.
    let found = unsafe state.pointee.sharedFind(key, query)
    readers.leave(stripe, isHit: found != nil)
    return found
  }
}

func yieldThread() { sched_yield() }

@usableFromInline
func makeMutex() -> UnsafeMutableRawPointer {
  let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  unsafe mutex.initialize(to: pthread_mutex_t())
  var attributes = pthread_mutexattr_t()
  unsafe pthread_mutexattr_init(&attributes)
  #if !canImport(Darwin) && canImport(Glibc)
    // The mutex is held for only tens of nanoseconds, so spinning is faster than sleeping.
    unsafe pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ADAPTIVE_NP))
  #endif
  unsafe pthread_mutex_init(mutex, &attributes)
  unsafe pthread_mutexattr_destroy(&attributes)
  return UnsafeMutableRawPointer(mutex)
}

@usableFromInline
func destroyMutex(_ mutex: UnsafeMutableRawPointer) {
  let mutex = unsafe mutex.assumingMemoryBound(to: pthread_mutex_t.self)
  unsafe pthread_mutex_destroy(mutex)
  unsafe mutex.deallocate()
}

func tryLockMutex(_ mutex: UnsafeMutableRawPointer) -> Bool {
  unsafe pthread_mutex_trylock(mutex.assumingMemoryBound(to: pthread_mutex_t.self)) == 0
}

func lockMutex(_ mutex: UnsafeMutableRawPointer) {
  unsafe pthread_mutex_lock(mutex.assumingMemoryBound(to: pthread_mutex_t.self))
}

func unlockMutex(_ mutex: UnsafeMutableRawPointer) {
  unsafe pthread_mutex_unlock(mutex.assumingMemoryBound(to: pthread_mutex_t.self))
}
