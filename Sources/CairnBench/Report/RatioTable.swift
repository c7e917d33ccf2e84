/// How many times as fast Cairn was as each other store, row by row: the last column of the long
/// table, side by side.
struct RatioTable {
  let section: Plan.Section
  let results: [BenchResult]

  /// `nil` if there are fewer than two other stores, because their ratios are easy to find.
  var text: String? {
    let others = section.stores.filter { store in
      store != .cairn && results.contains { $0.store == store && !$0.workload.isInMemory }
    }
    guard section.stores.contains(.cairn), others.count > 1 else { return nil }
    var rows = [["workload", "cairn"] + others.map(\.rawValue)]
    for workload in Workload.allCases {
      let row = results.filter { $0.workload == workload }
      guard let cairn = row.first(where: { $0.store == .cairn }) else { continue }
      rows.append(
        [workload.rawValue, Figures.rate(cairn.opsPerSecond)]
          + others.map { store in
            row.first { $0.store == store }?.cairnRatio(in: results).map(Figures.ratio) ?? "–"
          })
    }
    return "\(section.title): how many times as fast cairn was\n"
      + TextTable.aligned(rows, leftAlignedColumnCount: 1)
  }
}
