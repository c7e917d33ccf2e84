import Cairn
import Hummingbird
import ServiceLifecycle

/// Caches responses in memory and on disk. Each response is computed once for all requests.
///
///     router.get("report/:year", use: responses.caching(for: .seconds(60)) { request, context in
///       CachedResponse(contentType: "text/html", body: try await render(context.parameters.require("year")))
///     })
///
/// The key of a response is the path and query of its request, so use the cache only for responses
/// that are the same for all users.
///
/// The cache wraps a handler and is not a middleware. A load continues for all waiting requests
/// even if the request that began it has ended, and a middleware must not call its next handler
/// after that.
public struct ResponseCache: Service {
  /// The underlying cache.
  public let cache: DiskCache<String, CachedResponse>

  /// Creates a response cache on an open cache.
  public init(cache: DiskCache<String, CachedResponse>) { self.cache = cache }

  /// Opens the cache at a path, or creates it.
  ///
  /// - Parameters:
  ///   - path: a directory.
  ///   - countLimit: the maximum number of responses. The least recently used are evicted.
  ///   - memoryByteLimit: the maximum number of bytes of bodies in memory.
  ///   - log: receives reports of problems that no call throws.
  public static func open(
    path: String, countLimit: Int, memoryByteLimit: Int, log: DiagnosticLog = .standardError
  ) async throws -> ResponseCache {
    var configuration = DiskCacheConfiguration(
      countLimit: countLimit, byteLimit: nil,
      memory: MemoryConfiguration(costLimit: memoryByteLimit))
    configuration.store.log = log
    return ResponseCache(
      cache: try await .open(.path(path), configuration: configuration) { _, response in
        response.body.readableBytes
      })
  }

  /// Returns a handler that answers from the cache, and calls `handler` once for simultaneous
  /// requests for a missing response. An error of `handler` reaches all of them and is not cached.
  ///
  /// - Parameter lifetime: the lifetime of a response, from the time at which it is computed.
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

  /// Waits until the application shuts down, then closes the cache.
  public func run() async throws {
    try? await gracefulShutdown()
    try await cache.close()
  }
}

/// The cached part of a response.
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
