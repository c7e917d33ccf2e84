import AsyncHTTPClient
import Cairn
import Foundation
import HTTPCaching
import NIOCore
import NIOHTTP1
import Synchronization

/// Caches responses for AsyncHTTPClient, by the rules of HTTP (RFC 9111).
///
///     let http = try await HTTPClientCache.open(
///       path: "/var/cache/example/http",
///       configuration: HTTPClientCache.configuration(byteLimit: 1 << 30))
///     let answer = try await http.execute(HTTPClientRequest(url: url), timeout: .seconds(10))
///
/// A response is fresh for the time in `Cache-Control: max-age` or `Expires`, less its `Age`. Then
/// the cache validates it by its `ETag` and `Last-Modified`; a 304 answer has no body. Requests
/// that differ in a header named by `Vary` have separate responses. While the origin is down or
/// answers 500, 502, 503 or 504, the cache returns the old response for as long as `stale-if-error`
/// of the response, or else of this cache, allows. Simultaneous requests for a URL cause one
/// request to the origin.
///
/// The cache answers only GET requests. If another method that may change the resource succeeds,
/// the cache removes the responses of its URL. A request with a range, a condition or `no-store`
/// bypasses the cache. There are no heuristics for freshness: a response without a lifetime is
/// validated each time.
public struct HTTPClientCache: Sendable {
  /// The underlying cache.
  public let cache: DiskCache<String, StoredResponse>
  private let client: HTTPClient
  private let bodyByteLimit: Int
  private let rules: HTTPRules
  private let noteFailure: @Sendable (any Error) -> Void

  /// The configuration of a cache of responses.
  ///
  /// - Parameters:
  ///   - staleIfError: how long after its lifetime a response may be returned while the origin
  ///     fails, unless the response has its own `stale-if-error`. Also how long the cache keeps a
  ///     response for validation.
  ///   - memoryByteLimit: the maximum number of bytes of bodies in memory.
  public static func configuration(
    byteLimit: Int, memoryByteLimit: Int = 32 << 20, staleIfError: Duration = .seconds(3600)
  ) -> DiskCacheConfiguration {
    var configuration = DiskCacheConfiguration(
      countLimit: nil, byteLimit: byteLimit,
      memory: MemoryConfiguration(costLimit: memoryByteLimit))
    configuration.loadPolicy.staleOnError = staleIfError
    configuration.loadPolicy.longestRetryDelay = .seconds(5)
    return configuration
  }

  /// Opens the cache at a path, or creates it.
  ///
  /// - Parameters:
  ///   - path: a directory.
  ///   - configuration: see `configuration(byteLimit:memoryByteLimit:staleIfError:)`.
  ///   - isShared: whether the responses go to several users. Then the cache keeps no `private`
  ///     responses and, by default, none to requests with `Authorization`, and it respects
  ///     `s-maxage`.
  ///   - bodyByteLimit: the maximum size of a body. A longer one causes an error.
  ///   - client: sends requests to the origin.
  ///   - noteFailure: called if old responses could not be removed. The call itself does not fail.
  public static func open(
    path: String, configuration: DiskCacheConfiguration, isShared: Bool = true,
    bodyByteLimit: Int = 16 << 20, client: HTTPClient = .shared,
    noteFailure: @escaping @Sendable (any Error) -> Void = { _ in }
  ) async throws -> HTTPClientCache {
    let cache = try await DiskCache<String, StoredResponse>.open(
      .path(path), configuration: configuration, keyCoder: .standard, valueCoder: .propertyList()
    ) { _, response in response.body.count }
    let rules = HTTPRules(
      isShared: isShared, staleIfError: configuration.loadPolicy.staleOnError,
      clock: configuration.store.clock)
    return HTTPClientCache(
      cache: cache, client: client, bodyByteLimit: bodyByteLimit, rules: rules,
      noteFailure: noteFailure)
  }

  /// Answers a request from the cache or the origin.
  ///
  /// - Parameters:
  ///   - request: the request. A body can be sent only once, so a request with a body is never
  ///     repeated.
  ///   - timeout: the time limit for the origin.
  /// - Returns: the response, with its `Age` if it comes from the cache.
  /// - Throws: the client's error, unless a stale response may be returned instead.
  public func execute(
    _ request: HTTPClientRequest, timeout: TimeAmount
  ) async throws -> HTTPClientResponse {
    guard request.isCacheable else {
      let answer = try await fetch(request, timeout)
      if ![.GET, .HEAD, .OPTIONS, .TRACE].contains(request.method), answer.status < 400 {
        await removeOld(url: request.url)
      }
      return answer.response(age: nil)
    }
    // The first answer may say that responses vary by headers. Then the key changes.
    for _ in 1...3 {
      let names = try cache.value(forKey: request.kept.variationKey)?.variation ?? []
      if let response = try await answer(request, varyingBy: names, timeout) { return response }
    }
    return try await fetch(request, timeout).response(age: nil)
  }

  /// Removes the responses of a URL, or else all responses. The request has succeeded and must not
  /// be repeated, so a failure reaches `noteFailure`, not the caller.
  private func removeOld(url: String) async {
    await Task {  // A cancelled task could not remove them.
      do { return try await remove(url: url) } catch { noteFailure(error) }
      do { try await cache.removeAll() } catch { noteFailure(error) }
    }.value
  }

  /// Removes all responses of a URL.
  public func remove(url: String) async throws {
    try await cache.removeAll(tagged: StoredRequest(url: url, headers: [:]).tag)
  }

  /// Closes the cache.
  public func close() async throws { try await cache.close() }

  /// - Returns: `nil` if the response under this key is for a different request.
  private func answer(
    _ request: HTTPClientRequest, varyingBy names: [String], _ timeout: TimeAmount
  ) async throws -> HTTPClientResponse? {
    // A response that must not be kept, or a failure, goes only to the task that requested it.
    let passed = Mutex<StoredResponse?>(nil)
    let loaded: Loaded<StoredResponse>?
    do {
      loaded = try await cache.loaded(forKey: request.kept.key(varyingBy: names)) { prior in
        try await load(request, names, prior, timeout, passed)
      }
    } catch is OriginFailure { loaded = nil }
    guard let loaded else {
      if let answer = passed.withLock({ $0 }) { return answer.response(age: nil) }
      return try await fetch(request, timeout).response(age: nil)
    }
    let response = loaded.value
    guard response.selecting == request.kept.values(of: response.variation) else { return nil }
    if loaded.isStale, !rules.mayGive(response, age: loaded.age) {
      let answer = try await fetch(request, timeout)
      do { try await cache.removeValue(forKey: request.kept.key(varyingBy: names)) } catch {
        noteFailure(error)
      }
      return answer.response(age: nil)
    }
    return response.response(age: loaded.age)
  }

  private func load(
    _ request: HTTPClientRequest, _ names: [String], _ prior: PriorValue<StoredResponse>?,
    _ timeout: TimeAmount, _ passed: borrowing Mutex<StoredResponse?>
  ) async throws -> LoadResult<StoredResponse> {
    let kept = request.kept
    var request = request
    request.headers.add(contentsOf: prior?.value.conditions ?? [])
    var answer = try await fetch(request, timeout)
    if answer.status == 304, let prior {
      answer = prior.value.renewed(by: answer)
      if rules.isSame(answer, as: prior.value) {
        return prior.notModified(lifetime: .after(rules.lifetime(of: answer)))
      }
    }
    if [500, 502, 503, 504].contains(answer.status) {
      passed.withLock { $0 = answer }
      throw OriginFailure()
    }
    guard rules.mayKeep(answer, to: kept) else {
      passed.withLock { $0 = answer }
      return .absent(for: .zero)
    }
    var options = EntryOptions(lifetime: .after(rules.lifetime(of: answer)), tags: [kept.tag])
    if answer.variation != names {
      let marker = StoredResponse(varyingBy: answer.variation)
      try await cache.setValue(marker, forKey: kept.variationKey, options: .tags([kept.tag]))
      let key = kept.key(varyingBy: answer.variation)
      try await cache.setValue(answer, forKey: key, options: options)
      // The response is under another key now. Callers that wait for this load look it up again.
      options.lifetime = .after(.zero)
    }
    return .loaded(answer, options: options)
  }

  private func fetch(
    _ request: HTTPClientRequest, _ timeout: TimeAmount
  ) async throws -> StoredResponse {
    let start = rules.clock.now()
    let response = try await client.execute(request, timeout: timeout)
    let body = try await response.body.collect(upTo: bodyByteLimit)
    let delay = rules.clock.now().millisecondsSinceEpoch - start.millisecondsSinceEpoch
    return StoredResponse(
      status: response.status.code, headers: response.headers, body: Data(body.readableBytesView),
      to: request.kept, delay: Int(delay / 1000))
  }
}

/// The origin answered with a server error.
private struct OriginFailure: Error {}
