/// The help text of a command, as wide as there is room.
///
/// Empty lines separate paragraphs. A paragraph whose lines begin with two spaces is a list. Each
/// line that begins with exactly two is a term; its meaning follows after three spaces or more, and
/// continues in lines that begin with more. Lines that begin with `  $ ` are examples and stay
/// unchanged. Text in square brackets stays on one line.
package struct Paragraphs {
  package let text: String

  package init(_ text: String) { self.text = text }

  /// The text in lines of at most this many columns, as far as its words allow.
  package func lines(width: Int) -> [String] {
    text.split(separator: "\n\n").enumerated().flatMap { index, paragraph in
      (index > 0 ? [""] : []) + Self.lines(of: String(paragraph), width: width)
    }
  }

  private static func lines(of paragraph: String, width: Int) -> [String] {
    let lines = paragraph.split(separator: "\n").map(String.init)
    if lines.allSatisfy({ $0.hasPrefix("  $ ") }) { return lines }
    if lines[0].hasPrefix("  ") { return list(lines, width: width) }
    let hanging = paragraph.hasPrefix("usage: ") ? 7 : 0
    return wrapped(paragraph, first: "", rest: indent(hanging), width: width)
  }

  private static func list(_ lines: [String], width: Int) -> [String] {
    var rows: [(term: String, meaning: String)] = []
    for line in lines {
      let words = line.trimmingPrefix { $0 == " " }
      if line.hasPrefix("   "), let last = rows.indices.last {
        rows[last].meaning += " " + words
      } else if let gap = words.firstRange(of: "   ") {
        rows.append((String(words[..<gap.lowerBound]), String(words[gap.lowerBound...])))
      } else {
        rows.append((String(words), ""))
      }
    }
    let column = 5 + (rows.map(\.term.count).max() ?? 0)
    // With little room beside the terms, their meanings go below them.
    let isBeside = column <= width / 2
    return rows.flatMap { term, meaning in
      let first = "  " + term
      return isBeside
        ? wrapped(
          meaning, first: first + indent(column - first.count), rest: indent(column), width: width)
        : [first] + wrapped(meaning, first: indent(6), rest: indent(6), width: width)
    }
  }

  private static func wrapped(
    _ text: String, first: String, rest: String, width: Int
  ) -> [String] {
    var lines = [first]
    var isEmpty = true
    for word in words(text) {
      if !isEmpty, lines[lines.count - 1].count + 1 + word.count > width {
        lines.append(rest)
        isEmpty = true
      }
      lines[lines.count - 1] += (isEmpty ? "" : " ") + word
      isEmpty = false
    }
    return lines
  }

  private static func words(_ text: String) -> [String] {
    var words: [String] = []
    var depth = 0
    for part in text.split(whereSeparator: { $0 == " " || $0 == "\n" }) {
      if depth > 0 { words[words.count - 1] += " " + part } else { words.append(String(part)) }
      depth += part.count { $0 == "[" } - part.count { $0 == "]" }
    }
    return words
  }

  private static func indent(_ count: Int) -> String { String(repeating: " ", count: count) }
}
