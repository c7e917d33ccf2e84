import NIOHTTP1

/// Under which keys the responses to a request are kept.
package struct StoredRequest: Sendable {
  let url: String
  let headers: HTTPHeaders

  package init(url: String, headers: HTTPHeaders) {
    self.url = url
    self.headers = headers
  }

  /// What all that is kept of its URL has in common. Two URLs may share one: then both are removed.
  package var tag: String {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in url.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return String(hash, radix: 16)
  }

  /// Where it is kept by which headers the responses differ.
  package var variationKey: String { "by \(url)" }

  package func key(varyingBy names: [String]) -> String {
    (["of \(url)"] + zip(names, values(of: names)).map { "\($0): \($1)" }).joined(separator: "\n")
  }

  /// What the headers are; several of a name together.
  package func values(of names: [String]) -> [String] {
    names.map { headers[canonicalForm: $0].joined(separator: ", ") }
  }
}
