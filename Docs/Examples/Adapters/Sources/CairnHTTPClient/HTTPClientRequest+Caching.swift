import AsyncHTTPClient
import HTTPCaching
import NIOHTTP1

extension HTTPClientRequest {
  var kept: StoredRequest { StoredRequest(url: url, headers: headers) }

  /// Whether the cache may answer the request.
  var isCacheable: Bool {
    let passing = [
      "Range", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range",
    ]
    let asksOrigin = headers[canonicalForm: "Cache-Control"].map { $0.lowercased() }
      .contains { ["no-store", "no-cache", "max-age=0"].contains($0) }
    return method == .GET && body == nil && !asksOrigin
      && !passing.contains { headers.contains(name: $0) }
  }
}
