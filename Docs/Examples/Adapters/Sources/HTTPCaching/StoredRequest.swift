import NIOHTTP1

/// Computes the keys under which the responses to a request are stored.
package struct StoredRequest: Sendable {
  let url: String
  let headers: HTTPHeaders

  package init(url: String, headers: HTTPHeaders) {
    self.url = url
    self.headers = headers
  }

  /// The tag of all entries of the URL. If two URLs have the same tag, a removal removes the
  /// entries of both.
  package var tag: String {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in url.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return String(hash, radix: 16)
  }

  /// The key of the entry that lists the headers by which the responses vary.
  package var variationKey: String { "by \(url)" }

  package func key(varyingBy names: [String]) -> String {
    (["of \(url)"] + zip(names, values(of: names)).map { "\($0): \($1)" }).joined(separator: "\n")
  }

  /// The values of headers. Headers with the same name are joined.
  package func values(of names: [String]) -> [String] {
    names.map { headers[canonicalForm: $0].joined(separator: ", ") }
  }
}
