/// The ratios that the project promises, in words, if a run has them.
struct Highlights {
  let results: [BenchResult]

  var text: String {
    var lines: [String] = []
    for result in results {
      guard let ratio = result.cairnRatio(in: results) else { continue }
      let isPromised =
        (result.store == .filePerKey && result.valueBytes == 100
          && [.fill, .get].contains(result.workload))
        || (result.store == .bareMap && result.workload == .get)
        || (result.workload == .memoryGet && result.store != .nsCache)
      guard isPromised else { continue }
      lines.append(
        "\(result.workload.rawValue), \(Figures.count(result.n)) keys × \(result.valueBytes) B: "
          + "cairn is \(Figures.ratio(ratio)) \(result.store.rawValue)\n")
    }
    return lines.joined()
  }
}

extension Machine {
  /// Everything on one line.
  var summary: String {
    "\(processor), \(processorCount) processors, \(Figures.bytes(memoryBytes)), "
      + "\(architecture), \(operatingSystem)"
  }
}
