internal import CairnLibC

/// The holder of a flock(2) lock, as far as the kernel shows it in `/proc/locks`.
enum LockOwner {
  /// The process that locked a file, or `nil` if it is unknown, for example in another PID
  /// namespace.
  static func processID(of identity: FileIdentity) -> Int32? {
    guard let text = read("/proc/locks") else { return nil }
    // As makedev(3) packs them.
    let device = identity.device
    let major = (device >> 8) & 0xFFF | (device >> 32) & ~0xFFF
    let minor = device & 0xFF | (device >> 12) & ~0xFF
    var owners: [Int32] = []
    for line in text.split(separator: "\n") {
      // 2: FLOCK  ADVISORY  WRITE 29857 fe:00:16237181 0 EOF
      let fields = line.split(separator: " ")
      guard fields.count > 5, fields[1] == "FLOCK", let process = Int32(fields[4]), process > 0
      else { continue }
      let file = fields[5].split(separator: ":")
      guard file.count == 3, UInt64(file[2]) == identity.inode,
        UInt64(file[0], radix: 16) == major, UInt64(file[1], radix: 16) == minor
      else { continue }
      owners.append(process)
    }
    return owners.first
  }

  /// When a process was started, to the second, or `nil` if it is unknown.
  static func startTime(of processID: Int32) -> Timestamp? {
    // The process name, in parentheses, may contain anything. The fields from the third on follow
    // the name. The 22nd is the start time, in ticks since the machine started.
    guard let text = read("/proc/\(processID)/stat"), let end = text.lastIndex(of: ")") else {
      return nil
    }
    let fields = text[end...].split(separator: " ")
    let tickCount = Int64(sysconf(Int32(_SC_CLK_TCK)))
    let clock = SystemClock()
    guard fields.count > 20, let ticks = Int64(fields[20]), tickCount > 0,
      let elapsed = clock.elapsed()
    else { return nil }
    let (milliseconds, isTooLong) = ticks.multipliedReportingOverflow(by: 1000)
    if isTooLong { return nil }
    let age = elapsed.milliseconds - milliseconds / tickCount
    let start = clock.now().millisecondsSinceEpoch - age
    return Timestamp(millisecondsSinceEpoch: (start + 500) / 1000 * 1000)
  }

  private static func read(_ path: String) -> String? {
    // SAFETY: the path and the buffer outlive the calls that they are passed to.
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while bytes.count < 4 << 20 {
      let count = unsafe CairnLibC.read(descriptor, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { break }
      bytes += buffer.prefix(count)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
