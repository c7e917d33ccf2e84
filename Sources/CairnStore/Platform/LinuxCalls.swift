#if !canImport(Darwin)
  internal import CairnLibC

  // What only Linux has, or has under another name. The calls of files are in `SystemFileSystem+Linux`.

  extension SystemError {
    /// See `isOfMedium`.
    static var numbersOfMedium: [Int32] { [EIO, EBADMSG, EUCLEAN, ENXIO, ENODATA] }
  }

  extension SystemClock {
    static var timeOfDay: clockid_t { CLOCK_REALTIME_COARSE }
    /// Includes sleep, and cannot be set.
    static var sinceStart: clockid_t { CLOCK_BOOTTIME }
    /// Accurate to the kernel's tick, and cheap to read.
    static var ticking: clockid_t { CLOCK_MONOTONIC_COARSE }
  }

  @inline(__always)
  var mutexByteCount: Int { unsafe MemoryLayout<pthread_mutex_t>.size }

  /// Waits use the monotonic clock, because it cannot be set.
  func makeCondition(_ condition: UnsafeMutablePointer<pthread_cond_t>) {
    var attributes = pthread_condattr_t()
    unsafe pthread_condattr_init(&attributes)
    unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    unsafe pthread_cond_init(condition, &attributes)
    unsafe pthread_condattr_destroy(&attributes)
  }

  /// Waits on a condition that `makeCondition` made.
  func wait(
    _ condition: UnsafeMutablePointer<pthread_cond_t>,
    _ mutex: UnsafeMutablePointer<pthread_mutex_t>,
    milliseconds: Int64
  ) {
    var deadline = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &deadline)
    let nanoseconds = Int64(deadline.tv_nsec) + milliseconds % 1000 * 1_000_000
    let seconds = min(milliseconds / 1000, 1 << 32)
    deadline.tv_sec += Int(seconds + nanoseconds / 1_000_000_000)
    deadline.tv_nsec = Int(nanoseconds % 1_000_000_000)
    _ = unsafe pthread_cond_timedwait(condition, mutex, &deadline)
  }

  func adviseHugePages(_ address: UnsafeMutableRawPointer, byteCount: Int) {
    unsafe madvise(address, byteCount, MADV_HUGEPAGE)
  }

  /// Starts a thread that nobody awaits. It passes the context to `ThreadStarter.run`.
  func startThread(_ context: UnsafeMutableRawPointer) -> Bool {
    var thread = pthread_t()
    let result = unsafe pthread_create(
      &thread, nil,
      { context in
        unsafe ThreadStarter.run(context)
        return nil
      }, context)
    if result != 0 { return false }
    pthread_detach(thread)
    return true
  }
#endif
