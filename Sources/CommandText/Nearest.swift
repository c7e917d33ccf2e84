/// The word of a list that somebody may have meant, or `nil` where none is near.
///
/// Near is what takes few changes: one for up to four letters, two for up to eight, three beyond. A letter
/// that is missing, too many, another, or in the place of its neighbour is one change. A word that begins
/// with what was typed is near too.
package func nearest(to typed: String, in words: [String]) -> String? {
  let limit = typed.count <= 4 ? 1 : typed.count <= 8 ? 2 : 3
  let near = words.map { (word: $0, distance: distance(Array(typed), Array($0))) }
    .filter { $0.distance <= limit && $0.distance < typed.count }
    .min { $0.distance < $1.distance }
  return near?.word ?? words.first { typed.count >= 2 && $0.hasPrefix(typed) }
}

/// How many changes make one word the other: the distance of Damerau and Levenshtein, in which no letter
/// is changed twice.
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
