import Cairn
import Hummingbird
import ServiceLifecycle

/// Responses that are made once for all who ask: in memory, and behind it on disk.
///
///     router.get("report/:year", use: responses.caching(for: .seconds(60)) { request, context in
///       CachedResponse(contentType: "text/html", body: try await render(context.parameters.require("year")))
///     })
///
/// Responses are known by the path and the query of their request. Use it for what is the same for everybody.
///
/// It wraps a handler, and is no middleware: a load goes on for all who wait when the request that began it is
/// over, and a middleware must not call what comes next after that.
public struct ResponseCache: Service {
  /// What the responses are kept in.
  public let cache: DiskCache<String, CachedResponse>

  /// Makes one over a cache that is open.
  public init(cache: DiskCache<String, CachedResponse>) { self.cache = cache }

  /// Opens the cache at a path, or makes one there.
  ///
  /// - Parameters:
  ///   - path: a directory.
  ///   - countLimit: how many responses there may be. The least recently used go.
  ///   - memoryByteLimit: how many bytes of bodies are held in memory.
  ///   - log: where the cache reports what no call throws.
  public static func open(
    path: String, countLimit: Int, memoryByteLimit: Int, log: DiagnosticLog = .standardError
  ) async throws -> ResponseCache {
    var configuration = DiskCacheConfiguration(
      countLimit: countLimit, byteLimit: nil,
      memory: MemoryTierConfiguration(countLimit: nil, costLimit: memoryByteLimit))
    configuration.store.log = log
    return ResponseCache(
      cache: try await .open(.path(path), configuration: configuration) { _, response in
        response.body.readableBytes
      })
  }

  /// A handler that answers from the cache, and calls `handler` for what is not there: once, however many ask
  /// for it at the same time. What `handler` throws goes to all of them, and is not kept.
  ///
  /// - Parameter lifetime: how long a response lives, from its end on.
  public func caching<Context: RequestContext>(
    for lifetime: Duration,
    _ handler: @escaping @Sendable (Request, Context) async throws -> CachedResponse
  ) -> @Sendable (Request, Context) async throws -> CachedResponse {
    { [cache] request, context in
      try await cache.value(forKey: request.uri.string, lifetime: .after(lifetime)) {
        try await handler(request, context)
      }
    }
  }

  /// Waits for the end of the application, and closes the cache.
  public func run() async throws {
    try? await gracefulShutdown()
    try await cache.close()
  }
}

/// What is kept of a response.
public struct CachedResponse: Codable, Sendable, ResponseGenerator {
  public var contentType: String
  public var body: ByteBuffer

  public init(contentType: String, body: ByteBuffer) {
    self.contentType = contentType
    self.body = body
  }

  public func response(from request: Request, context: some RequestContext) -> Response {
    Response(
      status: .ok, headers: [.contentType: contentType], body: ResponseBody(byteBuffer: body))
  }
}
