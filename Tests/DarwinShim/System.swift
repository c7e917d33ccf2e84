public import Dispatch
import Glibc

// MARK: Time

public struct clockid_t: RawRepresentable, Equatable, Sendable {
  public var rawValue: UInt32
  public init(_ rawValue: UInt32) { self.rawValue = rawValue }
  public init(rawValue: UInt32) { self.rawValue = rawValue }
}

public let CLOCK_REALTIME = clockid_t(0)
public let CLOCK_MONOTONIC_RAW = clockid_t(4)
public let CLOCK_MONOTONIC_RAW_APPROX = clockid_t(5)
public let CLOCK_MONOTONIC = clockid_t(6)
public let CLOCK_UPTIME_RAW = clockid_t(8)
public let CLOCK_THREAD_CPUTIME_ID = clockid_t(16)

@discardableResult
public func clock_gettime(
  _ clock: clockid_t, _ time: UnsafeMutablePointer<CDarwin.timespec>!
) -> Int32 {
  var found = Glibc.timespec()
  let own =
    switch clock {
    case CLOCK_REALTIME: Glibc.CLOCK_REALTIME
    case CLOCK_THREAD_CPUTIME_ID: Glibc.CLOCK_THREAD_CPUTIME_ID
    case CLOCK_UPTIME_RAW: Glibc.CLOCK_MONOTONIC
    // Darwin's go on while the machine sleeps.
    case CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW: Glibc.CLOCK_BOOTTIME
    case CLOCK_MONOTONIC_RAW_APPROX: Glibc.CLOCK_MONOTONIC_COARSE
    default: preconditionFailure("a clock that Darwin lacks, or the shim")
    }
  let result = Glibc.clock_gettime(own, &found)
  time.pointee = CDarwin.timespec(tv_sec: found.tv_sec, tv_nsec: found.tv_nsec)
  return result
}

@discardableResult
public func nanosleep(
  _ time: UnsafePointer<CDarwin.timespec>!, _ rest: UnsafeMutablePointer<CDarwin.timespec>?
) -> Int32 {
  precondition(rest == nil)
  var own = Glibc.timespec(tv_sec: time.pointee.tv_sec, tv_nsec: time.pointee.tv_nsec)
  return Glibc.nanosleep(&own, nil)
}

// MARK: The machine

@discardableResult
public func sysctlbyname(
  _ name: UnsafePointer<CChar>!, _ old: UnsafeMutableRawPointer?,
  _ oldCount: UnsafeMutablePointer<Int>?, _ new: UnsafeMutableRawPointer?, _ newCount: Int
) -> Int32 {
  precondition(String(cString: name) == "kern.bootsessionuuid")
  guard let old, let oldCount, oldCount.pointee >= 37 else { return -1 }
  let descriptor = Glibc.open("/proc/sys/kernel/random/boot_id", Glibc.O_RDONLY)
  defer { Glibc.close(descriptor) }
  guard Glibc.read(descriptor, old, 36) == 36 else { return -1 }
  old.storeBytes(of: 0, toByteOffset: 36, as: UInt8.self)
  oldCount.pointee = 37
  return 0
}

@discardableResult
public func _NSGetExecutablePath(
  _ path: UnsafeMutablePointer<CChar>!, _ count: UnsafeMutablePointer<UInt32>!
) -> Int32 {
  let text = Glibc.realpath("/proc/self/exe", nil).unsafelyUnwrapped
  defer { Glibc.free(text) }
  let needed = UInt32(strlen(text) + 1)
  defer { count.pointee = needed }
  if count.pointee < needed { return -1 }
  memcpy(path, text, Int(needed))
  return 0
}

public let _SC_OPEN_MAX = Int32(Glibc._SC_OPEN_MAX)
public let _SC_CLK_TCK = Int32(Glibc._SC_CLK_TCK)
public let _SC_NPROCESSORS_ONLN = Int32(Glibc._SC_NPROCESSORS_ONLN)
public let _SC_PAGESIZE = Int32(Glibc._SC_PAGESIZE)

// MARK: Limits

public typealias rlim_t = UInt64
public let RUSAGE_SELF: Int32 = 0

/// `ru_maxrss` is in bytes.
@discardableResult
public func getrusage(_ who: Int32, _ usage: UnsafeMutablePointer<CDarwin.rusage>!) -> Int32 {
  precondition(who == RUSAGE_SELF)
  var own = Glibc.rusage()
  guard Glibc.getrusage(Glibc.RUSAGE_SELF.rawValue, &own) == 0 else { return -1 }
  func time(_ time: Glibc.timeval) -> CDarwin.timeval {
    CDarwin.timeval(tv_sec: time.tv_sec, tv_usec: Int32(time.tv_usec))
  }
  usage.pointee = CDarwin.rusage()
  usage.pointee.ru_utime = time(own.ru_utime)
  usage.pointee.ru_stime = time(own.ru_stime)
  usage.pointee.ru_maxrss = own.ru_maxrss * 1024
  usage.pointee.ru_minflt = own.ru_minflt
  usage.pointee.ru_majflt = own.ru_majflt
  return 0
}

public let RLIMIT_FSIZE: Int32 = 1
public let RLIMIT_AS: Int32 = 5
public let RLIMIT_NOFILE: Int32 = 8

private func linuxLimit(_ limit: Int32) -> __rlimit_resource_t {
  switch limit {
  case RLIMIT_FSIZE: __rlimit_resource_t(Glibc.RLIMIT_FSIZE.rawValue)
  case RLIMIT_AS: __rlimit_resource_t(Glibc.RLIMIT_AS.rawValue)
  case RLIMIT_NOFILE: __rlimit_resource_t(Glibc.RLIMIT_NOFILE.rawValue)
  default: preconditionFailure("a limit that Darwin lacks, or the shim")
  }
}

/// Without a limit, Darwin has 2^63 - 1.
@discardableResult
public func getrlimit(_ kind: Int32, _ limit: UnsafeMutablePointer<CDarwin.rlimit>!) -> Int32 {
  var own = Glibc.rlimit()
  guard Glibc.getrlimit(linuxLimit(kind), &own) == 0 else { return -1 }
  limit.pointee.rlim_cur = min(UInt64(own.rlim_cur), UInt64(Int64.max))
  limit.pointee.rlim_max = min(UInt64(own.rlim_max), UInt64(Int64.max))
  return 0
}

@discardableResult
public func setrlimit(_ kind: Int32, _ limit: UnsafePointer<CDarwin.rlimit>!) -> Int32 {
  func linux(_ value: UInt64) -> UInt { value >= UInt64(Int64.max) ? .max : UInt(value) }
  var own = Glibc.rlimit(
    rlim_cur: linux(limit.pointee.rlim_cur), rlim_max: linux(limit.pointee.rlim_max))
  return Glibc.setrlimit(linuxLimit(kind), &own)
}

// MARK: Signals and polls

public typealias sig_t = @convention(c) (Int32) -> Void
public var SIG_DFL: sig_t? { nil }
public var SIG_IGN: sig_t { unsafeBitCast(1, to: sig_t.self) }
public let SIGILL: Int32 = 4
public let SIGTRAP: Int32 = 5
public let SIGABRT: Int32 = 6
public let SIGFPE: Int32 = 8
public let SIGSEGV: Int32 = 11
public let RTLD_NOW: Int32 = 2
public let SIGHUP: Int32 = 1
public let SIGINT: Int32 = 2
public let SIGKILL: Int32 = 9
public let SIGPIPE: Int32 = 13
public let SIGALRM: Int32 = 14
public let SIGTERM: Int32 = 15
public let SIGBUS = Glibc.SIGBUS
public let SIGXFSZ = Glibc.SIGXFSZ
public let POLLIN = Int32(Glibc.POLLIN)
public let POLLPRI = Int32(Glibc.POLLPRI)
public let POLLERR = Int32(Glibc.POLLERR)
public typealias nfds_t = UInt32

@discardableResult
public func poll(
  _ descriptors: UnsafeMutablePointer<pollfd>!, _ count: nfds_t, _ timeout: Int32
) -> Int32 {
  Glibc.poll(descriptors, UInt(count), timeout)
}

@discardableResult
public func sigaction(
  _ signal: Int32, _ new: UnsafePointer<CDarwin.sigaction>?,
  _ old: UnsafeMutablePointer<CDarwin.sigaction>?
) -> Int32 {
  shim_sigaction(signal, new, old)
}

// MARK: Memory pressure

public protocol DispatchSourceMemoryPressure: DispatchSourceProtocol {
  var data: DispatchSource.MemoryPressureEvent { get }
}

extension DispatchSource {
  public struct MemoryPressureEvent: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static let normal = Self(rawValue: 1)
    public static let warning = Self(rawValue: 2)
    public static let critical = Self(rawValue: 4)
  }
}

extension DispatchSource: DispatchSourceMemoryPressure {
  public var data: MemoryPressureEvent {
    MemoryPressureEvent(rawValue: (self as any DispatchSourceUserDataOr).data)
  }

  /// Never reports anything.
  public class func makeMemoryPressureSource(
    eventMask: MemoryPressureEvent, queue: DispatchQueue? = nil
  ) -> any DispatchSourceMemoryPressure {
    guard let source = makeUserDataOrSource(queue: queue) as? DispatchSource else {
      preconditionFailure("every source is one")
    }
    return source
  }
}
