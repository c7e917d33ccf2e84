import CairnStore

/// The cost of compaction: the bytes that it writes for each byte that callers write, by space
/// bound and skew of the overwrites. Bytes are counted; nothing is timed.
struct CompactionRun {
  let isQuick: Bool
  let seed: UInt64
  let directory: String

  var bounds: [Double] { isQuick ? [1.5, 2] : [1.25, 1.5, 2, 3] }

  enum Skew: String, CaseIterable { case uniform, zipf }

  struct Result {
    let bound: Double
    let skew: Skew
    /// Bytes that compaction wrote for each byte written by callers.
    let amplification: Double
    /// The most bytes that the segments took for each live byte.
    let peak: Double
  }

  private static let valueByteCount = 1000
  private var keyCount: Int { isQuick ? 1 << 11 : 1 << 16 }
  private var segmentByteLimit: Int { isQuick ? 64 << 10 : 256 << 10 }

  /// Overwrites every key twice on average, so that the log reaches its steady state. Then counts
  /// while every key is overwritten three more times. With `isQuick`, it is once before and two
  /// more times while counting.
  func result(bound: Double, skew: Skew) throws -> Result {
    let path = "\(directory)/\(skew.rawValue)-\(bound)"
    var configuration = StoreConfiguration()
    configuration.durability = .process
    configuration.segmentByteLimit = segmentByteLimit
    configuration.spaceBound = bound
    let store = try Store(path: path, configuration: configuration)
    var random = RandomSource(seed: seed)
    let law = ZipfLaw(keyCount: keyCount, random: &random)
    let value = (0..<Self.valueByteCount).map { UInt8(truncatingIfNeeded: $0) }
    func put(_ key: Int) throws { try store.setValue(value, forKey: Self.key(key)) }
    for key in 0..<keyCount { try put(key) }
    let live = try store.statistics().liveByteCount
    let recordByteCount = live / keyCount
    // Maintain the store after every quarter of a segment. Compaction then keeps up, as in a
    // program that does not overwrite as fast as it can.
    let step = max(1, segmentByteLimit / 4 / recordByteCount)
    var peak = 0
    func overwrite(_ count: Int) throws {
      for number in 1...count {
        try put(skew == .zipf ? law.key(&random) : random.index(below: keyCount))
        guard number % step == 0 else { continue }
        peak = max(peak, try store.statistics().segments.reduce(0) { $0 + $1.byteCount })
        try store.maintain()
      }
    }
    try overwrite((isQuick ? 1 : 2) * keyCount)
    let before = try store.statistics().compactedByteCount
    peak = 0
    let count = (isQuick ? 2 : 3) * keyCount
    try overwrite(count)
    let statistics = try store.statistics()
    for key in 0..<keyCount where try store.value(forKey: Self.key(key)) != value {
      throw BenchFailure.mismatch(
        store: "cairn", workload: "compaction", key: Self.key(key), detail: "the value is wrong")
    }
    try store.close()
    return Result(
      bound: bound, skew: skew,
      amplification: Double(statistics.compactedByteCount - before)
        / Double(count * recordByteCount),
      peak: Double(peak) / Double(live))
  }

  /// All keys have the same length.
  private static func key(_ number: Int) -> String { "key \(number + 1_000_000)" }

  static func table(_ results: [Result]) -> String {
    let head = ["bound", "overwrites", "copied for a byte", "space for a live byte"]
    let rows = results.map {
      [
        "\($0.bound)", $0.skew.rawValue, Figures.threeDigits($0.amplification),
        Figures.threeDigits($0.peak),
      ]
    }
    return TextTable.aligned([head] + rows, leftAlignedColumnCount: 2)
  }
}
