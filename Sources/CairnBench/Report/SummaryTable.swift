/// Six workloads in 80 columns: Cairn's operations per second, and how many times as fast it was as
/// each other store.
struct SummaryTable {
  let section: Plan.Section
  let results: [BenchResult]

  static let end =
    "cairn-bench --full measures all workloads, in minutes; --help lists the options.\n"

  var text: String {
    let others = SummaryChart.stores.filter {
      $0.store != .cairn && section.stores.contains($0.store)
    }
    var rows = [["", "Cairn"] + others.map(\.name)]
    for (workload, title) in SummaryChart.workloads {
      let row = results.filter { $0.workload == workload }
      guard let cairn = row.first(where: { $0.store == .cairn }) else { continue }
      rows.append(
        [title, Figures.rate(cairn.opsPerSecond)]
          + others.map { other in
            row.first { $0.store == other.store }?.cairnRatio(in: row).map(Figures.ratio) ?? "–"
          })
    }
    return "\(section.title): operations per second, and how many times as fast Cairn was\n\n"
      + TextTable.aligned(rows, leftAlignedColumnCount: 1)
  }
}
