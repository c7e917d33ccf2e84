#if Peers
  import CairnLibC
  import Synchronization

  /// A resource for one thread at a time: a connection or a read transaction.
  // SAFETY: `@unchecked Sendable` because `PerThread` gives each to one thread, until that thread
  // ends.
  class ThreadBound: @unchecked Sendable {
    /// Set once, before any other thread knows of the object.
    fileprivate var giveBack: (@Sendable () -> Void)?
  }

  /// One object for each thread that requests one. When a thread ends, its object passes to the
  /// next thread, so that the object's cached memory is not lost.
  ///
  /// Finding the object costs a few nanoseconds. A list under a lock would cost a peer dozens.
  // SAFETY: `@unchecked Sendable` because the key is one of the C library's, and the lists are
  // under the lock. Any thread may call `make`, which uses only constants of the stores. `close` is
  // called once no thread uses the store.
  @safe
  final class PerThread<Value: ThreadBound>: @unchecked Sendable {
    private final class Lists: Sendable {
      let all = Mutex<[Value]>([])
      let free = Mutex<[Value]>([])
    }

    private let lists = Lists()
    private let make: () throws -> Value
    private var key = pthread_key_t()

    init(_ make: @escaping () throws -> Value) throws {
      self.make = make
      // SAFETY: the call fills the key.
      let error = unsafe pthread_key_create(&key, giveBackAtThreadEnd)
      guard error == 0 else {
        throw BenchFailure.system(call: "pthread_key_create", path: "", errorNumber: error)
      }
    }

    /// The object of this thread.
    @inline(__always)
    func value() throws -> Value {
      guard let pointer = unsafe pthread_getspecific(key) else { return try newValue() }
      // SAFETY: `newValue` has set it, and `lists` keeps it alive.
      return unsafe unsafeDowncast(
        Unmanaged<ThreadBound>.fromOpaque(pointer).takeUnretainedValue(), to: Value.self)
    }

    @inline(never)
    private func newValue() throws -> Value {
      let value = try lists.free.withLock { $0.popLast() } ?? makeValue()
      let pointer = unsafe Unmanaged<ThreadBound>.passUnretained(value).toOpaque()
      // SAFETY: the object lives at least until `close`, which deletes the key first.
      let error = unsafe pthread_setspecific(key, pointer)
      guard error == 0 else {
        throw BenchFailure.system(call: "pthread_setspecific", path: "", errorNumber: error)
      }
      return value
    }

    private func makeValue() throws -> Value {
      let value = try make()
      value.giveBack = { [weak lists, unowned value] in lists?.free.withLock { $0.append(value) } }
      lists.all.withLock { $0.append(value) }
      return value
    }

    /// Calls `end` with all objects. No thread has an object afterwards.
    func close(_ end: (Value) throws -> Void) throws {
      pthread_key_delete(key)
      lists.free.withLock { $0.removeAll() }
      let values = lists.all.withLock { all in
        let values = all
        all = []
        return values
      }
      for value in values { try end(value) }
    }
  }

  /// The C library calls this with the thread's value for a key.
  private let giveBackAtThreadEnd: @convention(c) (UnsafeMutableRawPointer?) -> Void = { pointer in
    guard let pointer = unsafe pointer else { return }
    // SAFETY: only `PerThread` sets values of its keys, and it keeps them alive.
    unsafe Unmanaged<ThreadBound>.fromOpaque(pointer).takeUnretainedValue().giveBack?()
  }
#endif
