import Foundation
import NIOHTTP1

/// What is kept of a response.
public struct StoredResponse: Codable, Sendable {
  struct Field: Codable, Sendable, Hashable {
    var name: String
    var value: String
  }

  package var status: UInt
  var fields: [Field]
  package var body: Data
  /// The headers of requests by which responses to this URL differ, in lower case and sorted; and what this
  /// one's request had in them.
  package var variation: [String]
  package var selecting: [String]
  /// How old it was when it came, in seconds.
  var initialAge: Int

  /// Says by which headers the responses to a URL differ.
  package init(varyingBy names: [String]) {
    (status, fields, body, variation, selecting, initialAge) = (0, [], Data(), names, [], 0)
  }

  /// - Parameter delay: how long the origin took, in seconds.
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

  /// The directives, in lower case. Of several of a name, the first counts.
  var cacheControl: [String: String] {
    let blanks = CharacterSet.whitespaces.union(CharacterSet(charactersIn: "\""))
    let pairs = headers[canonicalForm: "Cache-Control"].map { directive in
      let pair = directive.split(separator: "=", maxSplits: 1)
        .map { $0.trimmingCharacters(in: blanks) }
      return (pair.first?.lowercased() ?? "", pair.count == 2 ? pair[1] : "")
    }
    return Dictionary(pairs) { first, _ in first }
  }

  /// What asks the origin whether this is still the response (section 4.3.1).
  package var conditions: [(String, String)] {
    let pairs = [("If-None-Match", self["ETag"]), ("If-Modified-Since", self["Last-Modified"])]
    return pairs.compactMap { name, value in value.map { (name, $0) } }
  }

  /// This response with the headers of an answer that it is still valid (section 3.2).
  package func renewed(by answer: StoredResponse) -> StoredResponse {
    var renewed = self
    let new = answer.fields.filter { $0.name.lowercased() != "content-length" }
    let names = Set(new.map { $0.name.lowercased() })
    renewed.fields = fields.filter { !names.contains($0.name.lowercased()) } + new
    renewed.initialAge = answer.initialAge
    return renewed
  }

  /// The headers to give, with how old the response is; `nil`: it is from the origin.
  package func headers(age: Duration?) -> HTTPHeaders {
    var headers = headers
    if let age, age > .zero || initialAge > 0 {
      headers.replaceOrAdd(
        name: "Age", value: String(initialAge + Int(age.components.seconds)))
    }
    return headers
  }
}
