/// How cost grows with the number of keys: a line for each number and store.
struct ScaleTable {
  let results: [BenchResult]

  private static let costs: [Workload] = [
    .fill, .overwrite, .get, .getTwoThreads, .getMissing, .delete,
  ]

  var text: String {
    var rows = [
      ["keys", "store"] + Self.costs.map(\.rawValue)
        + [
          "p99.9 compacting", "open", "index", "compaction", "written, fill", "written, churn",
        ]
    ]
    for line in Self.lines(of: results) {
      func result(_ workload: Workload) -> BenchResult? {
        line.results.first { $0.workload == workload }
      }
      var row = [Figures.count(line.keyCount), line.store.rawValue]
      row += Self.costs.map { workload in
        result(workload).map { Figures.nanoseconds($0.nanosecondsPerOperation) } ?? ""
      }
      row.append(result(.getCompacting).map { Figures.duration($0.p999Nanoseconds) } ?? "")
      row.append(result(.openClean).map { Figures.duration($0.p50Nanoseconds) } ?? "")
      row.append(
        result(.fill)?.indexBytesPerKey.map { Figures.threeDigits($0) + " B/key" } ?? "")
      row.append(
        result(.compact).map { compaction in
          let byteCount = Double(BenchKey.byteCount + compaction.valueBytes)
          return Figures.bytes(Int(compaction.opsPerSecond * byteCount)) + "/s"
        } ?? "")
      for workload in [Workload.fill, .churn] {
        row.append(result(workload)?.writeAmplification.map(Figures.ratio) ?? "")
      }
      rows.append(row)
    }
    return
      "By the number of keys: the time of one operation, in get-2-threads of both threads together\n"
      + ReportTable.aligned(rows)
  }

  struct Line {
    var keyCount: Int
    var store: StoreKind
    var results: [BenchResult]
  }

  /// The results by number of keys and store.
  static func lines(of results: [BenchResult]) -> [Line] {
    var lines: [Line] = []
    for result in results {
      let index = lines.firstIndex { $0.keyCount == result.n && $0.store == result.store }
      if let index {
        lines[index].results.append(result)
      } else {
        lines.append(Line(keyCount: result.n, store: result.store, results: [result]))
      }
    }
    return lines.sorted { $0.keyCount < $1.keyCount }
  }
}

extension BenchResult {
  var nanosecondsPerOperation: Double { opsPerSecond > 0 ? 1e9 / opsPerSecond : 0 }
}

extension Figures {
  static func nanoseconds(_ value: Double) -> String {
    value < 1e3 ? threeDigits(value) + " ns" : duration(UInt64(value))
  }
}
