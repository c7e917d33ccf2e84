/// Breaks a line between words, so that no line has more than `width` columns.
///
/// Other spaces stay as they are. A word that is longer than a line gets its own line.
///
/// - Parameters:
///   - indent: the indent of all lines but the first, in columns.
///   - mark: the text to append to all lines but the last.
package func broken(
  _ line: String, width: Int, indent: Int = 2, mark: String = ""
) -> [String] {
  var lines: [String] = []
  var rest = Substring(line)
  var margin = ""
  while margin.count + rest.count > width {
    let words = rest.drop { $0 == " " }
    // Room for the words, and for the space after the last word.
    let room = rest.prefix(max(1, width - margin.count - mark.count + 1))
    let last = room.lastIndex(of: " ").flatMap { $0 > words.startIndex ? $0 : nil }
    guard let end = last ?? words.firstIndex(of: " ") else { break }
    let text = rest[..<end]
    lines.append(margin + text.prefix(upTo: text.endOfWords) + mark)
    rest = rest[end...].drop { $0 == " " }
    margin = String(repeating: " ", count: indent)
  }
  if !rest.isEmpty || lines.isEmpty { lines.append(margin + rest) }
  return lines
}

extension Substring {
  /// The index after the last character that is not a space.
  fileprivate var endOfWords: Index {
    lastIndex { $0 != " " }.map { index(after: $0) } ?? startIndex
  }
}
