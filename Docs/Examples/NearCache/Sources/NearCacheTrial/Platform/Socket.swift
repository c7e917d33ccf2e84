import Glibc

// All calls to C are in this file.

/// A failure of the test environment.
package struct TrialFailure: Error, CustomStringConvertible {
  package var description: String
  package init(_ description: String) { self.description = description }
}

/// A TCP socket on this machine.
struct Socket: Sendable {
  let descriptor: Int32

  private static func open() throws(TrialFailure) -> Socket {
    let descriptor = socket(
      AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, Int32(IPPROTO_TCP))
    if descriptor < 0 { throw TrialFailure("socket: error \(errno)") }
    return Socket(descriptor: descriptor)
  }

  /// Calls `body` with the address of a port.
  private static func withAddress(
    _ port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    // SAFETY: these calls accept a `sockaddr_in` as a `sockaddr` of the given size.
    return unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        unsafe body(address, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  /// Listens on a port; 0 means any free port.
  static func listening(port: Int = 0) throws(TrialFailure) -> Socket {
    let socket = try open()
    var one: Int32 = 1
    // SAFETY: four bytes, which outlive the call.
    unsafe setsockopt(socket.descriptor, SOL_SOCKET, SO_REUSEADDR, &one, 4)
    let isBound = unsafe withAddress(port) { unsafe bind(socket.descriptor, $0, $1) } == 0
    if !isBound || listen(socket.descriptor, 128) != 0 {
      socket.close()
      throw TrialFailure("listen: error \(errno)")
    }
    return socket
  }

  /// The port on which the socket listens.
  var port: Int {
    var address = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    // SAFETY: as above; both outlive the call.
    _ = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe getsockname(descriptor, $0, &size)
      }
    }
    return Int(in_port_t(bigEndian: address.sin_port))
  }

  /// Connects to a port. Returns `nil` if no process listens there.
  static func connected(port: Int) -> Socket? {
    guard let socket = try? open() else { return nil }
    if unsafe withAddress(port, { unsafe connect(socket.descriptor, $0, $1) }) == 0 {
      socket.sendAtOnce()
      return socket
    }
    socket.close()
    return nil
  }

  /// Waits for a connection. Returns `nil` once the socket is shut down.
  func accepted() -> Socket? {
    let descriptor = accept(descriptor, nil, nil)
    if descriptor < 0 { return nil }
    let socket = Socket(descriptor: descriptor)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    socket.sendAtOnce()
    return socket
  }

  private func sendAtOnce() {
    var one: Int32 = 1
    // SAFETY: four bytes, which outlive the call.
    unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, 4)
  }

  /// Waits for bytes. Returns `nil` at the end.
  func read() -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    // SAFETY: the array has this many bytes and outlives the call.
    let count = unsafe recv(descriptor, &bytes, bytes.count, 0)
    return count > 0 ? Array(bytes.prefix(count)) : nil
  }

  /// - Returns: whether all bytes were sent.
  func write(_ bytes: [UInt8]) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      // SAFETY: the bytes outlive the call.
      let count = unsafe rest.withUnsafeBytes { bytes in
        unsafe send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
      }
      if count <= 0 { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  /// Shuts the socket down for all threads that use it.
  func shutDown() { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }

  /// Closes the socket. Call once no thread uses it.
  func close() { _ = Glibc.close(descriptor) }
}

/// Sends a signal to a process that this program started.
package func send(_ signal: Int32, to process: Int32) { _ = kill(process, signal) }

/// Sleeps. Call only on threads that no tasks run on.
func pause(milliseconds: UInt32) { _ = usleep(milliseconds * 1000) }
