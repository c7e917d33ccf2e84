#if canImport(Darwin)
  internal import CairnLibC

  // What Darwin has instead of the calls in `LinuxCalls`.

  extension SystemError {
    static var numbersOfMedium: [Int32] { [EIO, EBADMSG, ENXIO, ENODATA] }
  }

  extension SystemClock {
    static var timeOfDay: clockid_t { CLOCK_REALTIME }
    static var sinceStart: clockid_t { CLOCK_MONOTONIC_RAW }
    static var ticking: clockid_t { CLOCK_MONOTONIC_RAW_APPROX }
  }

  var mutexByteCount: Int { MemoryLayout<pthread_mutex_t>.size }

  func makeCondition(_ condition: UnsafeMutablePointer<pthread_cond_t>) {
    unsafe pthread_cond_init(condition, nil)
  }

  func wait(
    _ condition: UnsafeMutablePointer<pthread_cond_t>,
    _ mutex: UnsafeMutablePointer<pthread_mutex_t>,
    milliseconds: Int64
  ) {
    var time = timespec(
      tv_sec: Int(min(milliseconds / 1000, 1 << 30)), tv_nsec: Int(milliseconds % 1000 * 1_000_000))
    _ = unsafe pthread_cond_timedwait_relative_np(condition, mutex, &time)
  }

  /// Darwin has none.
  func adviseHugePages(_ address: UnsafeMutableRawPointer, byteCount: Int) {}

  /// Starts a thread that nobody awaits. It passes the context to `ThreadStarter.run`.
  func startThread(_ context: UnsafeMutableRawPointer) -> Bool {
    var thread: pthread_t?
    let result = unsafe pthread_create(
      &thread, nil,
      { context in
        unsafe ThreadStarter.run(context)
        return nil
      }, context)
    if result != 0 { return false }
    if let thread = unsafe thread { unsafe pthread_detach(thread) }
    return true
  }
#endif
