import Foundation
import Synchronization

/// A proxy for a port that can be slow, silent or cut.
package final class FaultyNetwork: Sendable {
  /// The connections of a near cache: those for calls, and the one for invalidations.
  package enum Kind: Hashable, Sendable, CaseIterable { case calls, feed }

  /// How to treat bytes.
  package enum Mode: Hashable, Sendable {
    case open
    /// Bytes are delayed by this many milliseconds.
    case slow(UInt32)
    /// Bytes are held back without an error.
    case silent
    /// Connections are closed.
    case refusing
  }

  private final class Link: Sendable {
    let client: Socket
    let server: Socket
    let isFeed = Atomic(false)
    let openEnds = Atomic(2)

    init(_ client: Socket, _ server: Socket) {
      self.client = client
      self.server = server
    }

    var kind: Kind { isFeed.load(ordering: .relaxed) ? .feed : .calls }

    func cut() {
      client.shutDown()
      server.shutDown()
    }
  }

  private struct State {
    var modes: [Kind: Mode] = [:]
    var links: [ObjectIdentifier: Link] = [:]
    var connectionCount = 0
    var isClosed = false
  }

  package let port: Int
  private let target: Int
  private let listener: Socket
  private let state = Mutex(State())

  /// Listens on a free port.
  package init(to target: Int) throws {
    self.target = target
    listener = try Socket.listening()
    port = listener.port
    Thread { self.accept() }.start()
  }

  /// Sets the mode of existing and new connections.
  package func set(_ mode: Mode, for kinds: [Kind] = Kind.allCases) {
    state.withLock { state in for kind in kinds { state.modes[kind] = mode } }
    if mode == .refusing { cut(kinds) }
  }

  /// Closes all existing connections.
  package func cut(_ kinds: [Kind] = Kind.allCases) {
    state.withLock { state in
      for link in state.links.values where kinds.contains(link.kind) { link.cut() }
    }
  }

  /// The number of connections so far.
  package var connectionCount: Int { state.withLock { $0.connectionCount } }

  package func close() {
    state.withLock { $0.isClosed = true }
    listener.shutDown()
    cut()
  }

  private func mode(of link: Link) -> Mode {
    state.withLock { $0.isClosed ? .refusing : $0.modes[link.kind] ?? .open }
  }

  private func accept() {
    while let client = listener.accepted() {
      state.withLock { $0.connectionCount += 1 }
      guard let server = Socket.connected(port: target) else {
        client.close()
        continue
      }
      let link = Link(client, server)
      state.withLock { $0.links[ObjectIdentifier(link)] = link }
      Thread { self.pump(from: client, to: server, link) }.start()
      Thread { self.pump(from: server, to: client, link) }.start()
    }
    listener.close()
  }

  private func pump(from source: Socket, to sink: Socket, _ link: Link) {
    let mark = Data("SUBSCRIBE".utf8)
    loop: while let bytes = source.read() {
      if sink.descriptor == link.server.descriptor, Data(bytes).range(of: mark) != nil {
        link.isFeed.store(true, ordering: .relaxed)
      }
      var isDelayed = false
      wait: while true {
        switch mode(of: link) {
        case .open: break wait
        case .slow(let milliseconds):
          if isDelayed { break wait }
          isDelayed = true
          pause(milliseconds: milliseconds)
        case .silent: pause(milliseconds: 1)
        case .refusing: break loop
        }
      }
      if !sink.write(bytes) { break }
    }
    link.cut()
    // The other thread may still use the sockets.
    if link.openEnds.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
      state.withLock { _ = $0.links.removeValue(forKey: ObjectIdentifier(link)) }
      link.client.close()
      link.server.close()
    }
  }
}
