import Cairn
import CairnLibC
import Synchronization

/// All system calls and raw pointers of the command: `unsafe` is confined to this file.
///
/// Names and paths are bytes, as in the kernel: they need not be UTF-8. Calls that take a directory
/// never follow a link in the given name.
enum SystemCalls {
  /// The longest name of a file, in bytes.
  static let nameByteLimit = 255

  /// How a file is opened.
  enum Opening {
    /// A regular file in a tree, opened for reading. A pipe does not block; a link is refused.
    case fileForReading
    /// A new file in a tree, opened for writing. An existing name is refused.
    case newFile
    /// A directory in a tree; a link is refused.
    case directory
    /// A directory that the user named. It may be reached through a link.
    case directoryThroughLinks
    /// A directory that is opened only to inspect its location. It need not be readable.
    case place

    var flags: Int32 {
      switch self {
      case .fileForReading: O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
      case .newFile: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
      case .directory: O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
      case .directoryThroughLinks: O_RDONLY | O_DIRECTORY | O_CLOEXEC
      case .place: O_PATH | O_DIRECTORY | O_CLOEXEC
      }
    }
  }

  /// The command line, byte for byte, without the name of the program.
  static func arguments() -> [[UInt8]] {
    // SAFETY: the runtime keeps `argc` terminated strings at `unsafeArgv` for the process's life.
    (1..<max(1, Int(CommandLine.argc))).compactMap { index in
      guard let argument = unsafe CommandLine.unsafeArgv[index] else { return nil }
      return unsafe bytes(ofString: argument)
    }
  }

  static func open(
    _ path: [UInt8], in directory: Descriptor?, as opening: Opening
  ) throws(SystemError) -> Descriptor {
    Descriptor(
      try unsafe call("open", path) { path in
        unsafe openat(directory?.number ?? AT_FDCWD, path, opening.flags, 0o644)
      })
  }

  static func makeDirectory(
    _ path: [UInt8], in directory: Descriptor?
  ) throws(SystemError) {
    _ = try unsafe call("mkdir", path) { path in
      unsafe mkdirat(directory?.number ?? AT_FDCWD, path, 0o777)
    }
  }

  static func removeDirectory(_ path: [UInt8]) throws(SystemError) {
    _ = try unsafe call("rmdir", path) { path in unsafe rmdir(path) }
  }

  static func removeFile(_ name: [UInt8], in directory: Descriptor) throws(SystemError) {
    _ = try unsafe call("unlink", name) { path in unsafe unlinkat(directory.number, path, 0) }
  }

  /// The status of an open file.
  static func status(of descriptor: Descriptor) throws(SystemError) -> FileStatus {
    var status = stat()
    _ = try unsafe call("fstat", []) { _ in unsafe fstat(descriptor.number, &status) }
    return FileStatus(status)
  }

  /// How many more bytes may be allocated on the filesystem of a file.
  static func freeByteCount(of descriptor: Descriptor) throws(SystemError) -> Int {
    var status = statvfs()
    _ = try unsafe call("fstatvfs", []) { _ in unsafe fstatvfs(descriptor.number, &status) }
    let (bytes, isTooLarge) = Int(clamping: status.f_bavail)
      .multipliedReportingOverflow(by: Int(clamping: status.f_frsize))
    return isTooLarge ? .max : bytes
  }

  /// The status of a name. For a link, the status of the link itself.
  static func status(
    of path: [UInt8], in directory: Descriptor?
  ) throws(SystemError) -> FileStatus {
    var status = stat()
    _ = try unsafe call("stat", path) { path in
      unsafe fstatat(directory?.number ?? AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW)
    }
    return FileStatus(status)
  }

  /// The names in a directory except `.` and `..`, in bytewise order.
  static func names(in directory: Descriptor) throws(SystemError) -> [DirectoryName] {
    let copy = Descriptor(
      try unsafe call("dup", []) { _ in fcntl(directory.number, F_DUPFD_CLOEXEC, 0) })
    // SAFETY: the stream takes ownership of the descriptor and is closed once, below; an entry is
    // valid until the next `readdir`, and its bytes are copied before that.
    guard let stream = unsafe fdopendir(copy.number) else {
      throw SystemError(call: "fdopendir", number: errno)
    }
    copy.disown()
    defer { unsafe _ = closedir(stream) }
    unsafe rewinddir(stream)
    var names: [DirectoryName] = []
    while true {
      errno = 0
      guard let entry = unsafe readdir(stream) else {
        let number = errno
        if number != 0 { throw SystemError(call: "readdir", number: number) }
        break
      }
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
        unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) { name in
          unsafe bytes(ofString: name)
        }
      }
      if name == [UInt8(ascii: ".")] || name == [UInt8(ascii: "."), UInt8(ascii: ".")] { continue }
      names.append(
        DirectoryName(bytes: name, kind: FileKind(entryType: unsafe entry.pointee.d_type)))
    }
    return names.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
  }

  /// Reads at most `capacity` bytes; fewer only at the end of the file.
  static func read(_ descriptor: Descriptor, capacity: Int) throws(SystemError) -> [UInt8] {
    var failure: SystemError?
    // SAFETY: `read` receives the rest of the buffer, and the bytes it wrote are counted.
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
      while count < capacity {
        let start = unsafe buffer.baseAddress.map { unsafe $0 + count }
        let result = unsafe CairnLibC.read(descriptor.number, start, capacity - count)
        if result > 0 {
          count += result
        } else if result == 0 {
          return
        } else if errno != EINTR {
          failure = SystemError(call: "read", number: errno)
          return
        }
      }
    }
    if let failure { throw failure }
    return bytes
  }

  /// Writes all of the bytes.
  static func write(_ bytes: RawSpan, to descriptor: Descriptor) throws(SystemError) {
    // SAFETY: the pointer stays inside the buffer, which lives until the closure returns.
    try unsafe bytes.withUnsafeBytes { buffer throws(SystemError) in
      var written = 0
      while written < buffer.count {
        let start = unsafe buffer.baseAddress.map { unsafe $0 + written }
        let result = unsafe CairnLibC.write(descriptor.number, start, buffer.count - written)
        if result >= 0 {
          written += result
        } else if errno != EINTR {
          throw SystemError(call: "write", number: errno)
        }
      }
    }
  }

  /// Closes a written file. Some filesystems report only now that space ran out.
  static func close(_ descriptor: Descriptor) throws(SystemError) {
    descriptor.disown()
    // If the call is interrupted, the descriptor is closed anyway.
    if CairnLibC.close(descriptor.number) < 0, errno != EINTR {
      throw SystemError(call: "close", number: errno)
    }
  }

  /// How many descriptors the process may have.
  static func descriptorLimit() -> Int {
    let limit = sysconf(Int32(_SC_OPEN_MAX))
    return limit < 0 ? 256 : limit
  }

  /// The signal that has asked the process to end since `watchInterruptions`, or 0.
  static var interruption: Int32 { interruptingSignal.load(ordering: .relaxed) }

  private static let interruptingSignal = Atomic<Int32>(0)

  /// Records the first signal that asks the process to end, such as Ctrl-C, so that a command can
  /// clean up. A second signal ends the process at once. Signals that are ignored, for example
  /// under `nohup`, stay ignored.
  static func watchInterruptions() {
    // Initialise the variable before a handler may use it.
    interruptingSignal.store(0, ordering: .relaxed)
    for number in [SIGINT, SIGTERM, SIGHUP] {
      let earlier = signal(number) { number in
        SystemCalls.interruptingSignal.store(number, ordering: .relaxed)
        signal(number, SIG_DFL)
      }
      // SAFETY: compares an address.
      let isIgnored =
        unsafe unsafeBitCast(earlier, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
      if isIgnored { signal(number, SIG_IGN) }
    }
  }

  /// Waits for this long, or until the process is asked to end.
  static func pause(for duration: Duration) {
    let end = ContinuousClock.now + duration
    while interruption == 0 {
      let rest = min(end - ContinuousClock.now, .milliseconds(100))
      if rest <= .zero { return }
      // A signal ends the call, unless it came between the check above and the call. So the time is
      // short.
      _ = poll(nil, 0, max(1, Int32(clamping: rest.milliseconds)))
    }
  }

  /// Ends the process with the recorded signal, so that a shell sees the signal.
  static func endInterrupted() -> Never {
    _ = raise(interruption)
    exit(128 + interruption)
  }

  /// Ends the process.
  static func exit(_ status: Int32) -> Never { CairnLibC.exit(status) }

  /// Runs one system call with a terminated copy of the path, and retries the call if a signal
  /// interrupts it.
  ///
  /// Never inlined: a release in the caller could run before `errno` is read, and freeing memory
  /// may overwrite it.
  @inline(never)
  private static func call(
    _ name: String, _ path: [UInt8], _ body: (UnsafePointer<CChar>) -> Int32
  ) throws(SystemError) -> Int32 {
    // SAFETY: the copy ends in a zero byte and outlives the calls that read it.
    let terminated = path.map { CChar(bitPattern: $0) } + [0]
    let outcome = unsafe terminated.withUnsafeBufferPointer { buffer -> (Int32, Int32) in
      guard let start = buffer.baseAddress else { return (-1, EINVAL) }
      while true {
        let result = unsafe body(start)
        let number = errno
        if result >= 0 || number != EINTR { return (result, number) }
      }
    }
    if outcome.0 < 0 { throw SystemError(call: name, number: outcome.1) }
    return outcome.0
  }

  // SAFETY: the caller passes a string that ends in a zero byte.
  private static func bytes(ofString string: UnsafePointer<CChar>) -> [UInt8] {
    let raw = unsafe UnsafeRawBufferPointer(start: string, count: strlen(string))
    return unsafe [UInt8](raw)
  }
}

extension SystemError {
  /// The system's message for the error number.
  var reason: String {
    // SAFETY: the string is copied at once, and only one thread calls this.
    unsafe String(cString: strerror(number))
  }
}

extension RawSpan {
  /// The bytes as a separate array.
  var copied: [UInt8] {
    // SAFETY: the buffer is copied before the closure returns.
    unsafe withUnsafeBytes { unsafe [UInt8]($0) }
  }

  /// Whether the bytes equal those of the array.
  func equals(_ other: [UInt8]) -> Bool {
    guard byteCount == other.count else { return false }
    // SAFETY: both buffers have `byteCount` bytes and live until the closures return.
    return unsafe withUnsafeBytes { mine in
      unsafe other.withUnsafeBytes { theirs in
        guard let left = mine.baseAddress, let right = theirs.baseAddress else { return true }
        return unsafe memcmp(left, right, mine.count) == 0
      }
    }
  }
}

extension [UInt8] {
  /// The bytes without a copy.
  var rawSpan: RawSpan {
    @_lifetime(borrow self)
    get {
      // SAFETY: marked unsafe only because elements could have padding; `UInt8` has none.
      unsafe span.bytes
    }
  }
}
