/// A section's results as a table for the terminal.
struct ReportTable {
  let section: Plan.Section
  let results: [BenchResult]

  private static let headings = [
    "workload", "store", "median", "min – max", "p50", "p99", "p99.9", "disk", "memory", "cairn",
  ]
  private static let leftAlignedColumnCount = 2

  var text: String {
    var rows = [Self.headings]
    var previous: Workload?
    for result in results {
      let spread =
        result.rounds > 1
        ? Self.spread(result.minimumOpsPerSecond, result.maximumOpsPerSecond) : "one round"
      rows.append([
        result.workload == previous ? "" : result.workload.rawValue,
        result.store.rawValue,
        Figures.rate(result.opsPerSecond),
        spread,
        Figures.duration(result.p50Nanoseconds),
        Figures.duration(result.p99Nanoseconds),
        Figures.duration(result.p999Nanoseconds),
        Figures.bytes(result.diskBytes),
        Figures.bytes(result.peakResidentBytes),
        result.cairnRatio(in: results).map(Figures.ratio) ?? "",
      ])
      previous = result.workload
    }
    let hits = results.compactMap { result in
      result.hitRatio.map { "\(result.store.rawValue) \(Figures.percent($0))" }
    }
    let found = hits.isEmpty ? "" : "hits under the limit: \(hits.joined(separator: ", "))\n"
    return "\(section.title)\n"
      + TextTable.aligned(
        rows, leftAlignedColumnCount: Self.leftAlignedColumnCount) + found
  }

  /// A range of rates, with the unit only once if both rates have the same unit.
  private static func spread(_ minimum: Double, _ maximum: Double) -> String {
    let (low, high) = (Figures.rate(minimum), Figures.rate(maximum))
    return (low.suffix(4) == high.suffix(4) ? String(low.dropLast(4)) : low) + " – " + high
  }

  static let legend = """
    Medians of interleaved rounds. Percentiles are of calls (64 keys in get-many, 1,000 in
    fill-batch), disk is allocated blocks, memory is the peak with mapped pages of files. The last
    column is how many times as fast cairn was in that row. Only durable rows are synced, and
    stores named -interval once a second.
    """
}
