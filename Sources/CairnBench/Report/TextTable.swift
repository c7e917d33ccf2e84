/// Formats rows of cells as lines with aligned columns.
enum TextTable {
  /// Aligns the first columns to the left, and the others, which are numbers, to the right.
  static func aligned(_ rows: [[String]], leftAlignedColumnCount: Int) -> String {
    let columnCount = rows.map(\.count).max() ?? 0
    let widths = (0..<columnCount).map { column in
      rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
    }
    return rows.map { row in
      let cells = row.enumerated().map { column, cell in
        let padding = String(repeating: " ", count: widths[column] - cell.count)
        return column < leftAlignedColumnCount ? cell + padding : padding + cell
      }
      let line = cells.joined(separator: "  ")
      return String(line.reversed().drop { $0 == " " }.reversed()) + "\n"
    }.joined()
  }
}
