import Foundation
import FuzzSupport

/// The atomic operations of a function of the sources, in the order of the text.
struct Transcription: Sendable, CustomStringConvertible {
  let path: String
  /// Texts that lead to the function: the first occurs once in the file, the others follow.
  let anchors: [String]
  /// What each operation is, on what, and its orders.
  let operations: [String]

  init(_ path: String, _ anchors: String..., operations: [String]) {
    self.path = path
    self.anchors = anchors
    self.operations = operations
  }

  var description: String { anchors.joined(separator: " … ") }

  /// The orders of each operation: of success, then of failure. A call without an order is of
  /// functions that order everything.
  var orders: [[MemoryModel.Order]] {
    operations.map { operation in
      let orders = operation.split(separator: " ").compactMap {
        MemoryModel.Order(rawValue: String($0))
      }
      return orders.isEmpty ? [.sequential] : orders
    }
  }

  private struct NotFound: Error, CustomStringConvertible {
    var description: String
  }

  private static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// The operations as the source has them now.
  func sourceOperations() throws -> [String] {
    let url = Self.root.appending(path: path)
    let text = try String(contentsOf: url, encoding: .utf8)
    var rest = text.replacing(/\/\/[^\n]*/, with: "")[...]
    guard rest.ranges(of: anchors[0]).count == 1 else {
      throw NotFound(description: "\(path) does not have “\(anchors[0])” once")
    }
    for anchor in anchors {
      guard let place = rest.range(of: anchor) else {
        throw NotFound(description: "\(path) has no “\(anchor)”")
      }
      rest = rest[place.lowerBound...]
    }
    guard let begin = rest.firstIndex(of: "{"), let end = Self.end(of: rest[begin...]) else {
      throw NotFound(description: "\(path): “\(self)” has no end")
    }
    return Self.operations(in: String(rest[begin...end]))
  }

  /// Where the bracket closes with which the text begins.
  private static func end(of text: Substring) -> Substring.Index? {
    var depth = 0
    for index in text.indices {
      if "([{".contains(text[index]) { depth += 1 }
      if ")]}".contains(text[index]) { depth -= 1 }
      if depth == 0 { return index }
    }
    return nil
  }

  private static let names: [Substring: MemoryModel.Order] = [
    "relaxed": .relaxed, "RELAXED": .relaxed, "acquiring": .acquire, "ACQUIRE": .acquire,
    "releasing": .release, "RELEASE": .release, "acquiringAndReleasing": .acquireRelease,
    "ACQ_REL": .acquireRelease, "sequentiallyConsistent": .sequential, "SEQ_CST": .sequential,
  ]

  /// The operations in a text, an inner one before the one whose argument it is.
  static func operations(in text: String) -> [String] {
    var found: [(end: String.Index, operation: String)] = []
    let call =
      /(?:__atomic_(\w+)|\b(\w*_fence|order\w*_threads|atomicMemoryFence)|\.(\w+))\(/
    for match in text.matches(of: call) {
      let open = text.index(before: match.range.upperBound)
      guard let close = end(of: text[open...]) else { continue }
      let arguments = outerArguments(text[text.index(after: open)..<close])
      let joined = arguments.joined(separator: ",")
      let orders = joined.matches(of: /(?:ordering: \.|__ATOMIC_)(\w+)/).compactMap {
        names[$0.1]
      }
      var words: [String]
      if let name = match.1 {
        words = [String(name), String(arguments[0].drop { $0 == "&" })]
        if name.hasSuffix("_fence") { words.removeLast() }
      } else if let name = match.2 {
        words = [String(name)]
      } else if let name = match.3, !orders.isEmpty {
        words = [String(name), receiver(text[..<match.range.lowerBound])]
      } else {
        continue
      }
      found.append((close, (words + orders.map(\.rawValue)).joined(separator: " ")))
    }
    return found.sorted { $0.end < $1.end }.map(\.operation)
  }

  /// The arguments of a call, without those of calls in them.
  private static func outerArguments(_ text: Substring) -> [String] {
    var arguments = [""]
    var depth = 0
    for character in text {
      if ")]}".contains(character) { depth -= 1 }
      if character == ",", depth == 0 {
        arguments.append("")
      } else if depth == 0 {
        arguments[arguments.count - 1].append(character)
      }
      if "([{".contains(character) { depth += 1 }
    }
    return arguments
  }

  /// The expression at the end of a text, without spaces.
  private static func receiver(_ text: Substring) -> String {
    var depth = 0
    var name = ""
    for character in text.reversed() {
      if ")]".contains(character) { depth += 1 }
      if "([".contains(character) { depth -= 1 }
      let isPart = character.isLetter || character.isNumber || "._])([".contains(character)
      if depth < 0 || (depth == 0 && !isPart) { break }
      if !character.isWhitespace { name.append(character) }
    }
    return String(name.reversed())
  }
}
