import Glibc

public let WNOHANG: Int32 = 1
public let POSIX_SPAWN_SETSIGDEF: Int32 = 4
public let POSIX_SPAWN_SETSIGMASK: Int32 = 8
public typealias sigset_t = UInt32

@discardableResult
public func sigemptyset(_ signals: UnsafeMutablePointer<sigset_t>!) -> Int32 {
  signals.pointee = 0
  return 0
}

@discardableResult
public func sigfillset(_ signals: UnsafeMutablePointer<sigset_t>!) -> Int32 {
  signals.pointee = .max
  return 0
}

/// Linux's set: all signals or none.
private func linuxSet(_ signals: sigset_t) -> Glibc.sigset_t {
  precondition(signals == 0 || signals == .max)
  var set = Glibc.sigset_t()
  if signals == 0 { Glibc.sigemptyset(&set) } else { Glibc.sigfillset(&set) }
  return set
}

// Darwin's parameters are pointers to what `init` allocates.

public typealias posix_spawn_file_actions_t = UnsafeMutableRawPointer
public typealias posix_spawnattr_t = UnsafeMutableRawPointer

private typealias Actions = Glibc.posix_spawn_file_actions_t
private typealias Attributes = Glibc.posix_spawnattr_t

private func glibc<Value>(
  _ pointer: UnsafePointer<UnsafeMutableRawPointer?>, _ type: Value.Type
) -> UnsafeMutablePointer<Value> {
  pointer.pointee.unsafelyUnwrapped.assumingMemoryBound(to: type)
}

@discardableResult
public func posix_spawn_file_actions_init(
  _ actions: UnsafeMutablePointer<posix_spawn_file_actions_t?>!
) -> Int32 {
  let own = UnsafeMutablePointer<Actions>.allocate(capacity: 1)
  actions.pointee = UnsafeMutableRawPointer(own)
  return Glibc.posix_spawn_file_actions_init(own)
}

@discardableResult
public func posix_spawn_file_actions_destroy(
  _ actions: UnsafeMutablePointer<posix_spawn_file_actions_t?>!
) -> Int32 {
  let own = glibc(actions, Actions.self)
  defer { own.deallocate() }
  return Glibc.posix_spawn_file_actions_destroy(own)
}

@discardableResult
public func posix_spawn_file_actions_adddup2(
  _ actions: UnsafeMutablePointer<posix_spawn_file_actions_t?>!, _ descriptor: Int32,
  _ number: Int32
) -> Int32 {
  Glibc.posix_spawn_file_actions_adddup2(glibc(actions, Actions.self), descriptor, number)
}

@discardableResult
public func posix_spawn_file_actions_addopen(
  _ actions: UnsafeMutablePointer<posix_spawn_file_actions_t?>!, _ number: Int32,
  _ path: UnsafePointer<CChar>!, _ flags: Int32, _ mode: mode_t
) -> Int32 {
  Glibc.posix_spawn_file_actions_addopen(
    glibc(actions, Actions.self), number, path, linuxFlags(flags), UInt32(mode))
}

@discardableResult
public func posix_spawnattr_init(
  _ attributes: UnsafeMutablePointer<posix_spawnattr_t?>!
) -> Int32 {
  let own = UnsafeMutablePointer<Attributes>.allocate(capacity: 1)
  attributes.pointee = UnsafeMutableRawPointer(own)
  return Glibc.posix_spawnattr_init(own)
}

@discardableResult
public func posix_spawnattr_destroy(
  _ attributes: UnsafeMutablePointer<posix_spawnattr_t?>!
) -> Int32 {
  let own = glibc(attributes, Attributes.self)
  defer { own.deallocate() }
  return Glibc.posix_spawnattr_destroy(own)
}

@discardableResult
public func posix_spawnattr_setsigmask(
  _ attributes: UnsafeMutablePointer<posix_spawnattr_t?>!, _ signals: UnsafePointer<sigset_t>!
) -> Int32 {
  var set = linuxSet(signals.pointee)
  return Glibc.posix_spawnattr_setsigmask(glibc(attributes, Attributes.self), &set)
}

@discardableResult
public func posix_spawnattr_setsigdefault(
  _ attributes: UnsafeMutablePointer<posix_spawnattr_t?>!, _ signals: UnsafePointer<sigset_t>!
) -> Int32 {
  var set = linuxSet(signals.pointee)
  return Glibc.posix_spawnattr_setsigdefault(glibc(attributes, Attributes.self), &set)
}

/// Linux's flags have the same numbers.
@discardableResult
public func posix_spawnattr_setflags(
  _ attributes: UnsafeMutablePointer<posix_spawnattr_t?>!, _ flags: Int16
) -> Int32 {
  precondition(Int32(flags) & ~(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK) == 0)
  return Glibc.posix_spawnattr_setflags(glibc(attributes, Attributes.self), flags)
}

@discardableResult
public func posix_spawn(
  _ process: UnsafeMutablePointer<pid_t>!, _ path: UnsafePointer<CChar>!,
  _ actions: UnsafePointer<posix_spawn_file_actions_t?>?,
  _ attributes: UnsafePointer<posix_spawnattr_t?>?,
  _ arguments: UnsafePointer<UnsafeMutablePointer<CChar>?>!,
  _ environment: UnsafePointer<UnsafeMutablePointer<CChar>?>!
) -> Int32 {
  Glibc.posix_spawn(
    process, path, actions.map { glibc($0, Actions.self) },
    attributes.map { glibc($0, Attributes.self) }, arguments,
    environment)
}
