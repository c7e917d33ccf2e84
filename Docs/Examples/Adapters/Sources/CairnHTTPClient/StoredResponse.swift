import AsyncHTTPClient
import Cairn
import Foundation
import NIOCore
import NIOHTTP1

/// What is kept of a response.
public struct StoredResponse: Codable, Sendable {
  struct Field: Codable, Sendable, Hashable {
    var name: String
    var value: String
  }

  var status: UInt
  var fields: [Field]
  var body: Data
  /// The headers of requests by which responses to this URL differ, in lower case and sorted; and what this
  /// one's request had in them.
  var variation: [String]
  var selecting: [String]
  /// How old it was when it came, in seconds.
  var initialAge: Int

  /// Says by which headers the responses to a URL differ.
  init(varyingBy names: [String]) {
    (status, fields, body, variation, selecting, initialAge) = (0, [], Data(), names, [], 0)
  }

  init(
    _ response: HTTPClientResponse, body: ByteBuffer, selecting request: HTTPClientRequest,
    asked: Timestamp, received: Timestamp
  ) {
    let hops =
      [
        "connection", "keep-alive", "proxy-authenticate", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
      ] + response.headers[canonicalForm: "Connection"].map { $0.lowercased() }
    status = response.status.code
    fields = response.headers.filter { !hops.contains($0.name.lowercased()) }
      .map { Field(name: $0.name, value: $0.value) }
    self.body = Data(body.readableBytesView)
    variation = Set(response.headers[canonicalForm: "Vary"].map { $0.lowercased() }).sorted()
    selecting = request.values(of: variation)
    let delay = (received.millisecondsSinceEpoch - asked.millisecondsSinceEpoch) / 1000
    let age = response.headers.first(name: "Age").flatMap { Int($0) } ?? 0
    initialAge = max(0, age) + max(0, Int(delay))
  }

  subscript(name: String) -> String? {
    fields.first { $0.name.lowercased() == name.lowercased() }?.value
  }

  /// The directives, in lower case.
  var cacheControl: [String: String] {
    var control: [String: String] = [:]
    for field in fields where field.name.lowercased() == "cache-control" {
      for part in field.value.split(separator: ",") {
        let pair = part.split(separator: "=", maxSplits: 1)
          .map { $0.trimmingCharacters(in: .whitespaces.union(CharacterSet(charactersIn: "\""))) }
        // The first one counts.
        if let name = pair.first?.lowercased(), control[name] == nil {
          control[name] = pair.count == 2 ? pair[1] : ""
        }
      }
    }
    return control
  }

  /// Asks the origin whether this is still the response (section 4.3.1).
  func addConditions(to request: inout HTTPClientRequest) {
    if let tag = self["ETag"] { request.headers.add(name: "If-None-Match", value: tag) }
    if let date = self["Last-Modified"] {
      request.headers.add(name: "If-Modified-Since", value: date)
    }
  }

  /// This response with the headers of an answer that it is still valid (section 3.2).
  func renewed(by answer: StoredResponse) -> StoredResponse {
    var renewed = self
    let new = answer.fields.filter { $0.name.lowercased() != "content-length" }
    let names = Set(new.map { $0.name.lowercased() })
    renewed.fields = fields.filter { !names.contains($0.name.lowercased()) } + new
    renewed.initialAge = answer.initialAge
    return renewed
  }

  /// The response to give, with how old it is; `nil`: it is from the origin.
  func response(age: Duration?) -> HTTPClientResponse {
    var headers = HTTPHeaders(fields.map { ($0.name, $0.value) })
    if let age, age > .zero || initialAge > 0 {
      headers.replaceOrAdd(
        name: "Age", value: String(initialAge + Int(age.components.seconds)))
    }
    return HTTPClientResponse(
      status: HTTPResponseStatus(statusCode: Int(status)), headers: headers,
      body: .bytes(ByteBuffer(bytes: body)))
  }
}

extension HTTPClientRequest {
  /// Whether the cache may answer it.
  var isCacheable: Bool {
    let passing = [
      "Range", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range",
    ]
    let asksOrigin = headers[canonicalForm: "Cache-Control"].map { $0.lowercased() }
      .contains { ["no-store", "no-cache", "max-age=0"].contains($0) }
    return method == .GET && body == nil && !asksOrigin
      && !passing.contains { headers.contains(name: $0) }
  }

  /// What all that is kept of its URL has in common. Two URLs may share one: then both are removed.
  var tag: String {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in url.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return String(hash, radix: 16)
  }

  /// Where it is kept by which headers the responses differ.
  var variationKey: String { "by \(url)" }

  func key(varyingBy names: [String]) -> String {
    (["of \(url)"] + zip(names, values(of: names)).map { "\($0): \($1)" }).joined(separator: "\n")
  }

  /// What the headers are; several of a name together.
  func values(of names: [String]) -> [String] {
    names.map { headers[canonicalForm: $0].joined(separator: ", ") }
  }
}

extension HTTPMethod {
  /// Whether it may change what is at the URL.
  var isUnsafe: Bool { ![.GET, .HEAD, .OPTIONS, .TRACE].contains(self) }
}
