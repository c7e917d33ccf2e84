/// The plan of a run: consecutive sections, each with one value size.
struct Plan: Sendable {
  struct Section: Sendable {
    var stores: [StoreKind]
    var workloads: [Workload]
    var keyCount: Int
    var valueByteCount: Int
    /// Whether values have the sizes of images, and `valueByteCount` is about their mean.
    var areImages = false
    /// The maximum number of rounds of a row.
    var roundCount: Int
    /// The length of a round if the workload does not set the number of operations.
    var milliseconds: Int
    /// The number of threads of the rows that `--threads` applies to.
    var threadCount = 1
    /// The rows that each store is measured in; `nil`: all rows that the store supports.
    var rows: [StoreKind: Set<Workload>]?

    func includes(_ workload: Workload, of store: StoreKind) -> Bool {
      store.supports(workload) && rows?[store]?.contains(workload) != false
    }

    /// Rounds that begin with a fill are expensive: three are enough.
    func roundCount(of workload: Workload) -> Int {
      workload.refillsEveryRound ? min(roundCount, 3) : roundCount
    }
  }

  var sections: [Section]
  /// The time in seconds after which rounds are no longer repeated; `nil`: always repeated. A full
  /// run must finish within two minutes, even on a slow machine.
  let repeatingSeconds: Double?
  /// Rounds that take longer than this are not repeated. The time goes to rows whose figures vary.
  var repeatableSeconds = 1.0

  init(sections: [Section], repeatableSeconds: Double, repeatingSeconds: Double) {
    self.sections = sections
    self.repeatableSeconds = repeatableSeconds
    self.repeatingSeconds = repeatingSeconds
  }

  init(_ options: BenchOptions) {
    if options.isSummary {
      sections = [Self.summary]
      repeatingSeconds = 15
      return
    }
    repeatingSeconds = options.includesMemorySections && !options.isEveryStore ? 80 : nil
    if options.isImages {
      sections = [Self.images(options)]
      return
    }
    if options.isScale {
      sections = (options.keyCount.map { [$0] } ?? Self.scaleKeyCounts).map { count in
        Section(
          stores: options.stores ?? [.cairn], workloads: options.workloads ?? Workload.scale,
          keyCount: count, valueByteCount: options.valueByteCount ?? 100, roundCount: 3,
          milliseconds: 500)
      }
      return
    }
    let sizes = options.valueByteCount.map { [$0] } ?? [100, 1 << 10, 16 << 10, 256 << 10]
    sections = sizes.map { size in
      Section(
        stores: options.stores ?? StoreKind.standard,
        workloads: options.workloads
          ?? Workload.allCases.filter {
            options.threadCount == nil ? $0.isStandard : Workload.threaded.contains($0)
          },
        keyCount: options.keyCount
          ?? Self.defaultKeyCount(valueByteCount: size, isQuick: options.isQuick),
        valueByteCount: size,
        roundCount: options.isQuick ? 1 : 3,
        milliseconds: options.isQuick ? 5 : 120, threadCount: options.threadCount ?? 1)
    }
    if options.includesMemorySections {
      // Hot sets that do and do not fit in the processor's second-level cache.
      for count in options.isQuick ? [100] : [1_000, 10_000, 100_000] {
        sections.append(
          Section(
            stores: StoreKind.memory, workloads: Workload.allCases.filter(\.isInMemory),
            keyCount: count, valueByteCount: 100, roundCount: options.isQuick ? 1 : 9,
            milliseconds: options.isQuick ? 5 : 60))
      }
      sections.append(
        Section(
          stores: StoreKind.tiered, workloads: [.memoryGet, .memoryGetTwoThreads, .memorySet],
          keyCount: options.isQuick ? 100 : 10_000, valueByteCount: 100,
          roundCount: options.isQuick ? 1 : 5, milliseconds: options.isQuick ? 5 : 60))
    }
    if options.includesReferenceSection {
      sections.append(options.isEveryStore ? Self.millionOfAll : Self.million)
    }
  }

  /// Six workloads of the stores in this build. The keys are few, so that the file-per-key store
  /// takes only seconds.
  private static var summary: Section {
    Section(
      stores: SummaryChart.stores.map(\.store).filter(\.isBuilt),
      workloads: SummaryChart.workloads.map(\.workload), keyCount: 10_000, valueByteCount: 100,
      roundCount: 3, milliseconds: 120)
  }

  private static func images(_ options: BenchOptions) -> Section {
    Section(
      stores: options.stores ?? SummaryChart.stores.map(\.store).filter(\.isBuilt),
      workloads: options.workloads ?? Workload.images,
      keyCount: options.keyCount ?? (options.isQuick ? 200 : 10_000),
      valueByteCount: ImageSize.meanByteCount, areImages: true,
      roundCount: options.isQuick ? 1 : 3, milliseconds: options.isQuick ? 5 : 500)
  }

  /// A million keys: Cairn beside the limits of the machine.
  private static let million = Section(
    stores: [.cairn, .bareMap], workloads: [.fill, .get], keyCount: 1_000_000,
    valueByteCount: 100, roundCount: 9, milliseconds: 200)

  /// The same with the peers, except stores that would take minutes to fill.
  private static var millionOfAll: Section {
    Section(
      stores: StoreKind.onDisk.filter { $0 != .filePerKey && $0 != .yykv },
      workloads: Workload.allCases.filter { $0.isStandard && !$0.isInMemory }, keyCount: 1_000_000,
      valueByteCount: 100, roundCount: 5, milliseconds: 200)
  }

  private static let scaleKeyCounts = [10_000, 100_000, 1_000_000, 10_000_000]

  /// The number of keys that keeps the file-per-key store's fill to a few seconds.
  private static func defaultKeyCount(valueByteCount: Int, isQuick: Bool) -> Int {
    let count =
      switch valueByteCount {
      case ...256: 50_000
      case ...4_096: 10_000
      case ...65_536: 2_000
      default: max(16, 50 << 20 / valueByteCount)
      }
    return isQuick ? max(10, count / 40) : count
  }
}

extension Workload {
  /// The maximum length of a round, or `nil` if the round must complete all its operations, because
  /// other rows build on them.
  func millisecondLimit(_ section: Plan.Section) -> Int? {
    switch self {
    case .fill, .openKilled, .churn, .compact, .limited: nil
    case .fillBatch: section.milliseconds * 4
    case .overwrite, .delete: section.milliseconds * 6
    case .getCompacting, .overwriteCompacting: section.milliseconds * 4
    default: section.milliseconds
    }
  }
}
