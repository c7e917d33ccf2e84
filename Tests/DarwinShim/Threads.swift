import Glibc

// Darwin's objects are as large as Glibc's, or larger, and hold those of Glibc.

public typealias pthread_t = UnsafeMutablePointer<_opaque_pthread_t>

private func glibc<Value, Target>(
  _ pointer: UnsafeMutablePointer<Value>!, _ type: Target.Type
) -> UnsafeMutablePointer<Target> {
  precondition(MemoryLayout<Target>.size <= MemoryLayout<Value>.size)
  return UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: type)
}

@discardableResult
public func pthread_create(
  _ thread: UnsafeMutablePointer<pthread_t?>!, _ attributes: UnsafeRawPointer?,
  _ body: @convention(c) (UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?,
  _ context: UnsafeMutableRawPointer?
) -> Int32 {
  precondition(attributes == nil)
  var own = Glibc.pthread_t()
  let result = Glibc.pthread_create(
    &own, nil,
    unsafeBitCast(
      body, to: (@convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?).self),
    context)
  thread.pointee = pthread_t(bitPattern: own)
  return result
}

@discardableResult
public func pthread_detach(_ thread: pthread_t) -> Int32 {
  Glibc.pthread_detach(UInt(bitPattern: thread))
}

public func pthread_self() -> pthread_t {
  pthread_t(bitPattern: Glibc.pthread_self()).unsafelyUnwrapped
}

@discardableResult
public func pthread_mutex_init(
  _ mutex: UnsafeMutablePointer<CDarwin.pthread_mutex_t>!,
  _ attributes: UnsafePointer<CDarwin.pthread_mutexattr_t>?
) -> Int32 {
  Glibc.pthread_mutex_init(glibc(mutex, Glibc.pthread_mutex_t.self), nil)
}

@discardableResult
public func pthread_mutex_destroy(
  _ mutex: UnsafeMutablePointer<CDarwin.pthread_mutex_t>!
) -> Int32 {
  Glibc.pthread_mutex_destroy(glibc(mutex, Glibc.pthread_mutex_t.self))
}

@discardableResult
public func pthread_mutex_lock(_ mutex: UnsafeMutablePointer<CDarwin.pthread_mutex_t>!) -> Int32 {
  Glibc.pthread_mutex_lock(glibc(mutex, Glibc.pthread_mutex_t.self))
}

@discardableResult
public func pthread_mutex_trylock(
  _ mutex: UnsafeMutablePointer<CDarwin.pthread_mutex_t>!
) -> Int32 {
  Glibc.pthread_mutex_trylock(glibc(mutex, Glibc.pthread_mutex_t.self))
}

@discardableResult
public func pthread_mutex_unlock(
  _ mutex: UnsafeMutablePointer<CDarwin.pthread_mutex_t>!
) -> Int32 {
  Glibc.pthread_mutex_unlock(glibc(mutex, Glibc.pthread_mutex_t.self))
}

@discardableResult
public func pthread_mutexattr_init(
  _ attributes: UnsafeMutablePointer<CDarwin.pthread_mutexattr_t>!
) -> Int32 { 0 }

@discardableResult
public func pthread_mutexattr_destroy(
  _ attributes: UnsafeMutablePointer<CDarwin.pthread_mutexattr_t>!
) -> Int32 { 0 }

@discardableResult
public func pthread_cond_init(
  _ condition: UnsafeMutablePointer<CDarwin.pthread_cond_t>!,
  _ attributes: UnsafePointer<CDarwin.pthread_condattr_t>?
) -> Int32 {
  var own = Glibc.pthread_condattr_t()
  Glibc.pthread_condattr_init(&own)
  Glibc.pthread_condattr_setclock(&own, Glibc.CLOCK_MONOTONIC)
  return Glibc.pthread_cond_init(glibc(condition, Glibc.pthread_cond_t.self), &own)
}

@discardableResult
public func pthread_cond_destroy(
  _ condition: UnsafeMutablePointer<CDarwin.pthread_cond_t>!
) -> Int32 {
  Glibc.pthread_cond_destroy(glibc(condition, Glibc.pthread_cond_t.self))
}

@discardableResult
public func pthread_cond_broadcast(
  _ condition: UnsafeMutablePointer<CDarwin.pthread_cond_t>!
) -> Int32 {
  Glibc.pthread_cond_broadcast(glibc(condition, Glibc.pthread_cond_t.self))
}

@discardableResult
public func pthread_cond_wait(
  _ condition: UnsafeMutablePointer<CDarwin.pthread_cond_t>!,
  _ mutex: UnsafeMutablePointer<CDarwin.pthread_mutex_t>!
) -> Int32 {
  Glibc.pthread_cond_wait(
    glibc(condition, Glibc.pthread_cond_t.self), glibc(mutex, Glibc.pthread_mutex_t.self))
}

@discardableResult
public func pthread_cond_timedwait_relative_np(
  _ condition: UnsafeMutablePointer<CDarwin.pthread_cond_t>!,
  _ mutex: UnsafeMutablePointer<CDarwin.pthread_mutex_t>!,
  _ duration: UnsafePointer<CDarwin.timespec>?
) -> Int32 {
  guard let duration else { return EINVAL }
  var deadline = Glibc.timespec()
  Glibc.clock_gettime(Glibc.CLOCK_MONOTONIC, &deadline)
  let nanoseconds = deadline.tv_nsec + duration.pointee.tv_nsec
  deadline.tv_sec += duration.pointee.tv_sec + nanoseconds / 1_000_000_000
  deadline.tv_nsec = nanoseconds % 1_000_000_000
  return Glibc.pthread_cond_timedwait(
    glibc(condition, Glibc.pthread_cond_t.self), glibc(mutex, Glibc.pthread_mutex_t.self),
    &deadline)
}
