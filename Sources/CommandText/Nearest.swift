/// The word of a list that the user may have meant, or `nil` if none is near.
///
/// A near word differs by few changes: one for up to four letters, two for up to eight, three
/// beyond. A missing, extra, different or transposed letter is one change. A word that begins with
/// the typed one is near too, and nearer than a word that differs by several changes.
package func nearest(to typed: String, in words: [String]) -> String? {
  let limit = typed.count <= 4 ? 1 : typed.count <= 8 ? 2 : 3
  let near = words.map { (word: $0, distance: distance(Array(typed), Array($0))) }
    .filter { $0.distance <= limit && $0.distance < typed.count }
    .min { $0.distance < $1.distance }
  if let near, near.distance == 1 { return near.word }
  return words.first { typed.count >= 2 && $0.hasPrefix(typed) } ?? near?.word
}

/// The number of changes between two words: the Damerau-Levenshtein distance in which no letter is
/// changed twice.
private func distance(_ left: [Character], _ right: [Character]) -> Int {
  var rows = [Array(0...right.count)]
  for i in left.indices {
    var row = [i + 1]
    for j in right.indices {
      let same = left[i] == right[j] ? 0 : 1
      var cost = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + same)
      if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
        cost = min(cost, rows[i - 1][j - 1] + 1)
      }
      row.append(cost)
    }
    rows.append(row)
  }
  return rows[left.count][right.count]
}
