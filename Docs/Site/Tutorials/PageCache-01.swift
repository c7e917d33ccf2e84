import Cairn

struct Page: Codable, Sendable, Equatable {
  var title: String
  var body: String
}
