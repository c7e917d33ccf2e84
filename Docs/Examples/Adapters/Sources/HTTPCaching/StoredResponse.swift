import Foundation
import NIOHTTP1

/// The stored form of a response.
public struct StoredResponse: Codable, Sendable {
  struct Field: Codable, Sendable, Hashable {
    var name: String
    var value: String
  }

  package var status: UInt
  var fields: [Field]
  package var body: Data
  /// The request headers by which responses to this URL vary, in lower case and sorted, and their
  /// values in the request for this response.
  package var variation: [String]
  package var selecting: [String]
  /// The age of the response on arrival, in seconds.
  var initialAge: Int

  /// A marker that lists the headers by which the responses to a URL vary.
  package init(varyingBy names: [String]) {
    (status, fields, body, variation, selecting, initialAge) = (0, [], Data(), names, [], 0)
  }

  /// - Parameter delay: how long the request took, in seconds.
  package init(
    status: UInt, headers: HTTPHeaders, body: Data, to request: StoredRequest, delay: Int
  ) {
    let hops =
      [
        "connection", "keep-alive", "proxy-authenticate", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
      ] + headers[canonicalForm: "Connection"].map { $0.lowercased() }
    self.status = status
    fields = headers.filter { !hops.contains($0.name.lowercased()) }
      .map { Field(name: $0.name, value: $0.value) }
    self.body = body
    variation = Set(headers[canonicalForm: "Vary"].map { $0.lowercased() }).sorted()
    selecting = request.values(of: variation)
    let age = headers.first(name: "Age").flatMap { Int($0) } ?? 0
    initialAge = min(1 << 31, max(0, age)) + max(0, delay)
  }

  private var headers: HTTPHeaders { HTTPHeaders(fields.map { ($0.name, $0.value) }) }

  subscript(name: String) -> String? { headers.first(name: name) }

  /// The directives, with names in lower case. If a name occurs more than once, the first one
  /// counts.
  var cacheControl: [String: String] {
    let blanks = CharacterSet.whitespaces.union(CharacterSet(charactersIn: "\""))
    let pairs = headers[canonicalForm: "Cache-Control"].map { directive in
      let pair = directive.split(separator: "=", maxSplits: 1)
        .map { $0.trimmingCharacters(in: blanks) }
      return (pair.first?.lowercased() ?? "", pair.count == 2 ? pair[1] : "")
    }
    return Dictionary(pairs) { first, _ in first }
  }

  /// The headers of a conditional request that validates this response (section 4.3.1).
  package var conditions: [(String, String)] {
    let pairs = [("If-None-Match", self["ETag"]), ("If-Modified-Since", self["Last-Modified"])]
    return pairs.compactMap { name, value in value.map { (name, $0) } }
  }

  /// This response, updated with the headers of a 304 answer (section 3.2).
  package func renewed(by answer: StoredResponse) -> StoredResponse {
    var renewed = self
    let new = answer.fields.filter { $0.name.lowercased() != "content-length" }
    let names = Set(new.map { $0.name.lowercased() })
    renewed.fields = fields.filter { !names.contains($0.name.lowercased()) } + new
    renewed.initialAge = answer.initialAge
    return renewed
  }

  /// The headers to return.
  ///
  /// - Parameter age: the time since the response was cached; `nil` if it comes from the origin.
  package func headers(age: Duration?) -> HTTPHeaders {
    var headers = headers
    if let age, age > .zero || initialAge > 0 {
      headers.replaceOrAdd(
        name: "Age", value: String(initialAge + Int(age.components.seconds)))
    }
    return headers
  }
}
