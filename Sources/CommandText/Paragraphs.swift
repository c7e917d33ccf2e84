/// The help text of a command, wrapped to the available width.
package struct Paragraphs: Sendable {
  package enum Block: Sendable {
    /// Text to wrap. A synopsis begins with `usage: `, and its parts in square brackets stay whole.
    case text(String)
    /// Terms with their meanings.
    case list([(term: String, meaning: String)])
    /// Shell commands, one per line.
    case examples([String])
  }

  package let blocks: [Block]

  package init(blocks: [Block]) { self.blocks = blocks }

  /// Reads paragraphs, which empty lines separate.
  ///
  /// A paragraph whose lines begin with two spaces is a list. Each line that begins with exactly
  /// two spaces is a term. Its meaning follows after three spaces or more, and continues in lines
  /// that begin with more than two. Lines that begin with `  $ ` are examples.
  package init(_ text: String) {
    blocks = text.split(separator: "\n\n").map { paragraph in
      let lines = paragraph.split(separator: "\n").map(String.init)
      if lines.allSatisfy({ $0.hasPrefix("  $ ") }) {
        return .examples(lines.map { String($0.dropFirst(4)) })
      }
      return lines.first?.hasPrefix("  ") == true
        ? .list(Self.rows(lines)) : .text(String(paragraph))
    }
  }

  private static func rows(_ lines: [String]) -> [(term: String, meaning: String)] {
    var rows: [(term: String, meaning: String)] = []
    for line in lines {
      let words = line.trimmingPrefix { $0 == " " }
      if line.hasPrefix("   "), let last = rows.indices.last {
        rows[last].meaning += " " + words
      } else if let gap = words.firstRange(of: "   ") {
        let meaning = words[gap.lowerBound...].trimmingPrefix { $0 == " " }
        rows.append((String(words[..<gap.lowerBound]), String(meaning)))
      } else {
        rows.append((String(words), ""))
      }
    }
    return rows
  }

  /// The text in lines of at most this many columns, as far as its words allow.
  package func lines(width: Int) -> [String] {
    blocks.enumerated().flatMap { index, block in
      (index > 0 ? [""] : []) + Self.lines(of: block, width: width)
    }
  }

  private static func lines(of block: Block, width: Int) -> [String] {
    switch block {
    case .text(let text):
      let isSynopsis = text.hasPrefix("usage: ")
      return wrapped(
        words(text, keepingBrackets: isSynopsis), first: "", rest: isSynopsis ? 7 : 0,
        width: width)
    case .list(let rows): return list(rows, width: width)
    case .examples(let lines):
      // A broken line is still one command.
      return lines.flatMap { broken("  $ " + $0, width: width, indent: 6, mark: " \\") }
    }
  }

  private static func list(_ rows: [(term: String, meaning: String)], width: Int) -> [String] {
    let column = 5 + (rows.map(\.term.count).max() ?? 0)
    let longest = rows.flatMap { words($0.meaning, keepingBrackets: false) }.map(\.count).max() ?? 0
    // If there is little room to the right of the terms, their meanings go below them.
    let isBeside = column <= width / 2 && column + longest <= width
    return rows.flatMap { term, meaning in
      let meaning = words(meaning, keepingBrackets: false)
      let first = "  " + term
      return isBeside
        ? wrapped(
          meaning, first: first + indent(column - first.count), rest: column, width: width)
        : broken(first, width: width, indent: 4)
          + wrapped(meaning, first: indent(6), rest: 6, width: width)
    }
  }

  private static func wrapped(
    _ words: [String], first: String, rest: Int, width: Int
  ) -> [String] {
    var lines = [first]
    var isEmpty = true
    for word in words {
      if !isEmpty, lines[lines.count - 1].count + 1 + word.count > width {
        lines.append(indent(rest))
        isEmpty = true
      }
      lines[lines.count - 1] += (isEmpty ? "" : " ") + word
      isEmpty = false
    }
    return lines
  }

  private static func words(_ text: String, keepingBrackets: Bool) -> [String] {
    var words: [String] = []
    var depth = 0
    for part in text.split(whereSeparator: { $0 == " " || $0 == "\n" }) {
      if depth > 0 { words[words.count - 1] += " " + part } else { words.append(String(part)) }
      if keepingBrackets { depth += part.count { $0 == "[" } - part.count { $0 == "]" } }
    }
    return words
  }

  private static func indent(_ count: Int) -> String { String(repeating: " ", count: count) }
}
