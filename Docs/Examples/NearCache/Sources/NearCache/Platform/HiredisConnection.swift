import CHiredis
import Glibc

// All calls to C are in this file.

/// One connection to the engine, used by one thread. Calls do not block, except to resolve a host
/// name. hiredis reads and writes as much as the socket allows, and `poll` waits.
@safe
final class HiredisConnection {
  // SAFETY: created in `init`, freed in `deinit`, and used by one thread at a time, because the
  // class is not Sendable.
  private let context: UnsafeMutablePointer<redisContext>
  private let endpoint: EngineEndpoint

  /// Begins to connect.
  init(to endpoint: EngineEndpoint) throws(EngineError) {
    self.endpoint = endpoint
    // SAFETY: the host is copied. The result is null only if there is no memory.
    guard let context = unsafe redisConnectNonBlock(endpoint.host, Int32(endpoint.port)) else {
      throw EngineError(.cannotConnect("no memory"), endpoint, call: "connect")
    }
    unsafe self.context = unsafe context
    if unsafe context.pointee.err != 0 {
      throw EngineError(.cannotConnect(errorText), endpoint, call: "connect")
    }
    // Child processes must not inherit the connection.
    // SAFETY: the descriptor is open and belongs to the context.
    _ = unsafe fcntl(context.pointee.fd, F_SETFD, FD_CLOEXEC)
  }

  deinit {
    // SAFETY: there is no other reference to the context. This closes the socket.
    unsafe redisFree(context)
  }

  private var descriptor: Int32 { unsafe context.pointee.fd }

  private var errorText: String {
    // SAFETY: an array of 128 bytes with a terminating zero.
    let text = unsafe withUnsafeBytes(of: &context.pointee.errstr) { bytes in
      unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    return text.isEmpty ? "the connection was closed" : text
  }

  /// Throws if connecting has failed. Call once the socket is writable.
  func checkConnected() throws(EngineError) {
    var error: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    // SAFETY: both outlive the call, and `size` is the size of `error`.
    let result = unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size)
    if result != 0 { error = errno }
    if error != 0 {
      throw EngineError(.cannotConnect(systemErrorText(error)), endpoint, call: "connect")
    }
  }

  /// Appends bytes to the output buffer.
  func append(_ bytes: [UInt8]) throws(EngineError) {
    // SAFETY: the bytes are copied before the call returns.
    let result = unsafe bytes.withUnsafeBytes { bytes in
      unsafe redisAppendFormattedCommand(
        context, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    }
    try check(result)
  }

  /// Writes as much of the output buffer as the socket accepts.
  ///
  /// - Returns: whether the buffer is now empty.
  func write() throws(EngineError) -> Bool {
    var isDone: Int32 = 0
    // SAFETY: this object owns the context, and `isDone` outlives the call.
    try check(unsafe redisBufferWrite(context, &isDone))
    return isDone != 0
  }

  /// Reads available bytes from the socket, up to 16 KiB.
  func read() throws(EngineError) {
    // SAFETY: this object owns the context.
    try check(unsafe redisBufferRead(context))
  }

  /// The next complete reply, or `nil`.
  func nextReply() throws(EngineError) -> Reply? {
    var pointer: UnsafeMutableRawPointer?
    // SAFETY: this object owns the context. The caller owns the reply and frees it.
    try check(unsafe redisGetReplyFromReader(context, &pointer))
    guard let pointer = unsafe pointer else { return nil }
    // SAFETY: hiredis's own functions create a `redisReply`, which is copied and freed once.
    defer { unsafe freeReplyObject(pointer) }
    return unsafe Reply(copying: pointer.assumingMemoryBound(to: redisReply.self).pointee)
  }

  private func check(_ result: Int32) throws(EngineError) {
    if result != REDIS_OK { throw EngineError(.lost(errorText), endpoint, call: "") }
  }

  /// The result of a wait.
  struct Readiness {
    var canRead = false
    var canWrite = false
  }

  /// Waits until the socket is readable, or writable if `forWriting` is set, or until another
  /// thread calls `wakeup.signal()`, or until `time`. `nil` means no time limit.
  func wait(forWriting: Bool, _ wakeup: Wakeup, until time: Int64?) -> Readiness {
    let events = poll(descriptor, wantsRead: true, wantsWrite: forWriting, wakeup, until: time)
    return Readiness(
      canRead: events & Int16(POLLIN | POLLHUP | POLLERR) != 0,
      canWrite: events & Int16(POLLOUT | POLLHUP | POLLERR) != 0)
  }

  /// Waits until connecting has succeeded or failed, or until `time`.
  ///
  /// - Returns: whether `checkConnected` can tell the result.
  func waitForConnection(_ wakeup: Wakeup, until time: Int64) -> Bool {
    poll(descriptor, wantsRead: false, wantsWrite: true, wakeup, until: time) != 0
  }
}

extension Reply {
  /// Copies a hiredis reply.
  fileprivate init(copying reply: redisReply) {
    // SAFETY: `str` has `len` bytes in the kinds that have text, and `element` has `elements`
    // replies in an array, none of them null.
    func bytes() -> [UInt8] {
      unsafe [UInt8](UnsafeRawBufferPointer(start: reply.str, count: reply.len))
    }
    switch unsafe reply.type {
    case REDIS_REPLY_STRING: self = .bytes(bytes())
    case REDIS_REPLY_STATUS: self = .status(String(decoding: bytes(), as: UTF8.self))
    case REDIS_REPLY_ERROR: self = .error(String(decoding: bytes(), as: UTF8.self))
    case REDIS_REPLY_INTEGER: self = unsafe .integer(Int64(reply.integer))
    case REDIS_REPLY_ARRAY:
      self = unsafe .array(
        UnsafeBufferPointer(start: reply.element, count: reply.elements).map { element in
          unsafe element.map { unsafe Reply(copying: $0.pointee) } ?? .null
        })
    default: self = .null
    }
  }
}

/// Wakes a thread that waits in `poll`.
final class Wakeup: Sendable {
  fileprivate let descriptor: Int32

  init() {
    // The flags of `eventfd` have the same values as those of `open`.
    descriptor = eventfd(0, O_NONBLOCK | O_CLOEXEC)
    precondition(descriptor >= 0, "eventfd: \(systemErrorText(errno))")
  }

  deinit { close(descriptor) }

  func signal() {
    var one: UInt64 = 1
    // SAFETY: eight bytes, which outlive the call. The call fails only if a signal is already
    // pending.
    _ = unsafe Glibc.write(descriptor, &one, 8)
  }

  fileprivate func clear() {
    var count: UInt64 = 0
    // SAFETY: eight bytes, which outlive the call. The call fails only if no signal is pending.
    _ = unsafe Glibc.read(descriptor, &count, 8)
  }

  /// Waits for a signal, or until `time`.
  func wait(until time: Int64) {
    _ = poll(-1, wantsRead: false, wantsWrite: false, self, until: time)
  }
}

/// Waits for events on a descriptor, or on none if it is negative. A signal of `wakeup` ends the
/// wait and is consumed.
private func poll(
  _ descriptor: Int32, wantsRead: Bool, wantsWrite: Bool, _ wakeup: Wakeup, until time: Int64?
) -> Int16 {
  let events = (wantsRead ? POLLIN : 0) | (wantsWrite ? POLLOUT : 0)
  var descriptors = [
    pollfd(fd: descriptor, events: Int16(events), revents: 0),
    pollfd(fd: wakeup.descriptor, events: Int16(POLLIN), revents: 0),
  ]
  let now = bootTime()
  // One millisecond more, because the division rounds down.
  let rest = time.map { $0 <= now ? 0 : ($0 - now) / 1_000_000 + 1 } ?? -1
  // SAFETY: two elements, which outlive the call.
  let count = unsafe Glibc.poll(&descriptors, 2, Int32(clamping: rest))
  if count <= 0 { return 0 }
  if descriptors[1].revents != 0 { wakeup.clear() }
  return descriptors[0].revents
}

/// Nanoseconds since the machine was started. This clock cannot be set, and continues while the
/// machine or the process sleeps.
@inline(__always)
package func bootTime() -> Int64 {
  var time = timespec()
  // SAFETY: `time` outlives the call, which cannot fail for this clock.
  unsafe clock_gettime(CLOCK_BOOTTIME, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// Makes a write to a closed socket fail instead of ending the process. Affects only this thread,
/// so the program can still handle the signal as it likes.
func blockBrokenPipeSignal() {
  var set = sigset_t()
  // SAFETY: the set is local and outlives the calls.
  unsafe sigemptyset(&set)
  unsafe sigaddset(&set, SIGPIPE)
  unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
}

private func systemErrorText(_ number: Int32) -> String {
  // SAFETY: the text has a terminating zero and is copied at once. If two threads request unknown
  // numbers at once, the digits may be mixed up.
  unsafe String(cString: strerror(number))
}
