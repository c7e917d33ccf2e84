import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix

/// A minimal HTTP server.
struct HTTPServer: Sendable {
  struct Request: Sendable {
    var method: HTTPMethod
    var path: String
    var body: String
  }

  enum Answer: Sendable {
    case now(HTTPResponseStatus, String)
    /// Answers when the work is done: with 204, or with 500 if it throws.
    case later(@Sendable () async throws -> Void)
  }

  private let channel: any Channel
  let port: Int

  /// Listens on a port of 127.0.0.1.
  ///
  /// - Parameter sharesPort: whether other processes may listen on the same port (`SO_REUSEPORT`).
  static func start(
    port: Int, sharesPort: Bool, answer: @escaping @Sendable (Request) throws -> Answer
  ) async throws -> HTTPServer {
    var bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 1024)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          try pipeline.configureHTTPServerPipeline(withErrorHandling: true)
          try pipeline.addHandler(RequestHandler(answer))
        }
      }
    if sharesPort {
      let option = NIOBSDSocket.Option(rawValue: SO_REUSEPORT)
      bootstrap = bootstrap.serverChannelOption(.socketOption(option), value: 1)
    }
    let channel = try await bootstrap.bind(host: "127.0.0.1", port: port).get()
    return HTTPServer(channel: channel, port: channel.localAddress?.port ?? port)
  }

  /// Stops accepting connections.
  func stop() async throws { try await channel.close() }
}

/// Answers the requests of one connection.
private final class RequestHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let answer: @Sendable (HTTPServer.Request) throws -> HTTPServer.Answer
  private var head: HTTPRequestHead?
  private var body = ByteBuffer()

  init(_ answer: @escaping @Sendable (HTTPServer.Request) throws -> HTTPServer.Answer) {
    self.answer = answer
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      self.head = head
      body.clear()
    case .body(var part): body.writeBuffer(&part)
    case .end:
      guard let head else { return }
      let request = HTTPServer.Request(
        method: head.method, path: head.uri, body: String(buffer: body))
      do {
        switch try answer(request) {
        case .now(let status, let text): write(status, text, head, context)
        case .later(let work):
          let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
          context.eventLoop.makeFutureWithTask(work).whenComplete { result in
            let (handler, context) = bound.value
            switch result {
            case .success: handler.write(.noContent, "", head, context)
            case .failure(let error):
              handler.write(.internalServerError, "\(error)\n", head, context)
            }
          }
        }
      } catch { write(.internalServerError, "\(error)\n", head, context) }
    }
  }

  private func write(
    _ status: HTTPResponseStatus, _ text: String, _ request: HTTPRequestHead,
    _ context: ChannelHandlerContext
  ) {
    var headers: HTTPHeaders = ["Worker": Self.process]
    if status != .noContent { headers.add(name: "Content-Length", value: "\(text.utf8.count)") }
    if !request.isKeepAlive { headers.add(name: "Connection", value: "close") }
    let head = HTTPResponseHead(version: request.version, status: status, headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    if !text.isEmpty {
      context.write(
        wrapOutboundOut(.body(.byteBuffer(context.channel.allocator.buffer(string: text)))),
        promise: nil)
    }
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in
      if !request.isKeepAlive { bound.value.close(promise: nil) }
    }
  }

  private static let process = "\(getpid())"
}
