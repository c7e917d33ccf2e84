import CommandText

/// The command-line options.
struct BenchOptions: Sendable, Equatable {
  var isQuick = false
  /// Whether to measure every row. If no option selects or narrows a run, six rows are measured.
  var isFull = false
  /// Whether to measure the same rows with growing numbers of keys.
  var isScale = false
  /// Whether to measure stores of images, also under a limit.
  var isImages = false
  /// Whether to compare only the eviction policies of the cache in memory.
  var isPolicies = false
  /// Whether to count only what compaction writes.
  var isCompaction = false
  /// Whether to measure only how long single calls take while a cache does other work.
  var isStalls = false
  /// Whether to measure only the figures that have aims, and to compare them with their aims.
  var isTargets = false
  /// `nil`: the default stores.
  var stores: [StoreKind]?
  /// Whether `stores` contains every store. The stores are then also compared at a million keys.
  var isEveryStore = false
  /// `nil`: all.
  var workloads: [Workload]?
  /// `nil`: a number that suits the size of the values.
  var keyCount: Int?
  /// `nil`: the four default sizes.
  var valueByteCount: Int?
  /// How many threads read; `nil`: one, or as many as a row's name says.
  var threadCount: Int?
  var seed: UInt64 = 1
  /// The parent of the stores' temporary directory; `nil`: see `RunDirectory`.
  var directory: String?
  var jsonPath: String?
  var svgPath: String?
  var summaryPath: String?
  /// A file of results to draw charts from, or `nil` to measure.
  var resultsPath: String?

  /// Whether only six rows are measured, in seconds, because no option requests anything else.
  var isSummary: Bool {
    !isFull && !isQuick && !isScale && !isImages && !isPolicies && !isCompaction && !isStalls
      && !isTargets && !isEveryStore && !isNarrowed
  }

  /// Whether the run is limited to some stores, workloads, sizes or threads.
  private var isNarrowed: Bool {
    stores != nil || workloads != nil || keyCount != nil || valueByteCount != nil
      || threadCount != nil
  }

  /// Whether the run includes the section at a million keys, because nothing narrows the run.
  var includesReferenceSection: Bool { !isQuick && includesMemorySections }

  /// Whether the run includes the caches in memory.
  var includesMemorySections: Bool {
    !isScale && !isImages && !isSummary && (stores == nil || isEveryStore) && workloads == nil
      && keyCount == nil && valueByteCount == nil && threadCount == nil
  }

  static let usage = Paragraphs(
    """
    usage: cairn-bench [--full | --quick | --scale] \
    [--images | --policies | --compaction | --stalls | --targets] [--stores S,...] [--workloads W,...] [--n N] [--value-bytes V] [--threads T] \
    [--seed S] [--dir DIR] [--json FILE] [--svg FILE] [--summary FILE] [--from FILE] [--help]

    Runs Cairn and other stores through the same workloads, in real files, and checks every byte
    read. Without options it measures six workloads in about 20 seconds, with the peers if they
    are built. Keep the machine quiet meanwhile, and build with -c release.

      --full            all workloads, with values of four sizes, and memory; takes minutes
      --quick           a few seconds with few keys: checks correctness, measures nothing
      --scale           the cost of operations, memory, opening and compaction with 10,000 to
                        10,000,000 keys (or --n keys) of 100 bytes; takes minutes, and 4 GiB of
                        memory and of disk
      --images          images of 20 to 500 kB: storing, reading, replacing, requests under a limit
                        on disk, reopening; takes minutes, and 2 GB of disk a store
      --policies        hits and time of MemoryCache by eviction policy, on generated requests, and
                        its hits per second on one and two threads; takes a minute, or with --quick
                        a second
      --compaction      bytes that compaction writes per byte written, by space bound and skew of
                        the overwrites; takes a minute, or with --quick seconds
      --stalls          how long single gets and sets take while a cache trims, evicts, expires or
                        is overwritten; takes a minute, or with --quick a second
      --targets         every figure that has an aim, with the aim; takes 10 to 15 minutes, or with
                        --quick seconds. Some aims need the peers, and some need valgrind
      --stores S        of \(StoreKind.allCases.map(\.rawValue).joined(separator: ", ")); or all
                        that are built and no caches (default: cairn,file-per-key).
                        \(StoreKind.peers.map(\.rawValue).joined(separator: ", ")) need a build
                        with --traits Peers
      --workloads W     of \(Workload.allCases.map(\.rawValue).joined(separator: ", "))
                        (default: all)
      --n N             number of keys, for every value size (default: by size, at most 50,000)
      --value-bytes V   bytes of a value (default: 100, 1024, 16384 and 262144 in turn)
      --threads T       run \(Workload.threaded.map(\.rawValue).joined(separator: ", "))
                        on T threads each, and nothing else
      --seed S          seed for keys, values and orders (default: 1)
      --dir DIR         where to create the stores, which are removed at the end (default: $TMPDIR,
                        or the current directory)
      --json FILE       write the results to FILE
      --svg FILE        write a chart of all rows to FILE
      --summary FILE    write a chart of six workloads to FILE
      --from FILE       draw these charts from the results in FILE, written by --json, and
                        measure nothing

      $ cairn-bench
      $ cairn-bench --n 100000 --value-bytes 100
      $ cairn-bench --full --json results.json --svg results.svg
      $ cairn-bench --from results.json --summary summary.svg

    The exit status is 0 on success, 1 if a store failed or returned wrong bytes, and 2 if the
    command line is wrong. Ctrl-C removes the stores.
    """)
}

/// An error in the command line.
struct UsageError: Error, Equatable, CustomStringConvertible {
  var description: String
}

extension BenchOptions {
  private static let names =
    ("--help --full --quick --scale --images --policies --compaction --stalls --targets --stores --workloads "
    + "--n --value-bytes --threads --seed --dir --json --svg --summary --from").split(
      separator: " "
    ).map(String.init)

  /// Reads the arguments after the command's name. Returns `nil` if help was requested.
  static func parse(_ arguments: [String]) throws(UsageError) -> BenchOptions? {
    var options = BenchOptions()
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      var name = argument
      var inlineValue: String?
      if argument.hasPrefix("--"), let equals = argument.firstIndex(of: "=") {
        name = String(argument[..<equals])
        inlineValue = String(argument[argument.index(after: equals)...])
      }
      func value() throws(UsageError) -> String {
        guard let value = inlineValue ?? rest.popFirst(), !value.isEmpty else {
          throw UsageError(description: "\(name) needs a value")
        }
        return value
      }
      func flag() throws(UsageError) -> Bool {
        if inlineValue != nil { throw UsageError(description: "\(name) takes no value") }
        return true
      }
      switch name {
      case "--help", "-h": return nil
      case "--full": options.isFull = try flag()
      case "--quick": options.isQuick = try flag()
      case "--scale": options.isScale = try flag()
      case "--images": options.isImages = try flag()
      case "--policies": options.isPolicies = try flag()
      case "--compaction": options.isCompaction = try flag()
      case "--stalls": options.isStalls = try flag()
      case "--targets": options.isTargets = try flag()
      case "--stores":
        let text = try value()
        options.isEveryStore = text == "all"
        options.stores = try options.isEveryStore ? StoreKind.onDisk : stores(text, of: name)
      case "--workloads": options.workloads = try names(try value(), of: name)
      case "--n": options.keyCount = try number(try value(), of: name, in: 1...100_000_000)
      case "--value-bytes":
        options.valueByteCount = try number(try value(), of: name, in: 1...(1 << 28))
      case "--threads": options.threadCount = try number(try value(), of: name, in: 1...1_024)
      case "--seed": options.seed = try number(try value(), of: name, in: 0...UInt64.max)
      case "--dir": options.directory = try value()
      case "--json": options.jsonPath = try value()
      case "--svg": options.svgPath = try value()
      case "--summary": options.summaryPath = try value()
      case "--from": options.resultsPath = try value()
      default:
        let meant = nearest(to: name, in: names).map { "; did you mean \($0)?" } ?? ""
        throw UsageError(description: "unknown argument: \(argument)\(meant)")
      }
    }
    if [options.isFull, options.isQuick, options.isScale].count(where: { $0 }) > 1 {
      throw UsageError(description: "only one of --full, --quick and --scale may be given")
    }
    if options.isImages,
      options.isFull || options.isScale || options.isPolicies || options.isCompaction
        || options.isStalls || options.isTargets || options.valueByteCount != nil
        || options.threadCount != nil
    {
      throw UsageError(
        description: "--images allows only --quick, --stores, --workloads, --n, --seed, --dir, "
          + "--json, --svg and --summary")
    }
    if options.resultsPath != nil {
      var drawing = BenchOptions(svgPath: options.svgPath, summaryPath: options.summaryPath)
      drawing.resultsPath = options.resultsPath
      guard options == drawing, options.svgPath != nil || options.summaryPath != nil else {
        throw UsageError(description: "--from needs --svg or --summary, and allows no other option")
      }
    }
    if options.isTargets
      && (options.isFull || options.isScale || options.isPolicies || options.isCompaction
        || options.isStalls || options.isNarrowed || options.svgPath != nil
        || options.summaryPath != nil)
    {
      throw UsageError(description: "--targets allows only --quick, --seed, --dir and --json")
    }
    if options.threadCount != nil,
      options.isScale
        || options.workloads?.allSatisfy(Workload.threaded.contains) == false
    {
      let known = Workload.threaded.map(\.rawValue).joined(separator: ", ")
      throw UsageError(description: "--threads is for \(known)")
    }
    if options.isCompaction || options.isStalls,
      options.isFull || options.isScale || options.isPolicies || options.isNarrowed
        || options.isCompaction && options.isStalls
        || options.jsonPath != nil || options.svgPath != nil || options.summaryPath != nil
    {
      let name = options.isStalls ? "--stalls" : "--compaction"
      throw UsageError(description: "\(name) allows only --quick, --seed and --dir")
    }
    if options.isPolicies
      && (options.isFull || options.isScale || options.isNarrowed || options.summaryPath != nil)
    {
      throw UsageError(
        description: "--policies allows only --quick, --seed, --json and --svg")
    }
    return options
  }

  private static func number<N: FixedWidthInteger>(
    _ text: String, of name: String, in range: ClosedRange<N>
  ) throws(UsageError) -> N {
    guard let number = N(text), range.contains(number) else {
      throw UsageError(
        description:
          "\(name): \(text) is not a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  private static func stores(_ text: String, of option: String) throws(UsageError) -> [StoreKind] {
    let stores: [StoreKind] = try names(text, of: option)
    if let missing = stores.first(where: { !$0.isBuilt }) {
      throw UsageError(
        description: "\(option): \(missing.rawValue) is not in this build: \(StoreKind.peersAdvice)"
      )
    }
    return stores
  }

  private static func names<Name: RawRepresentable<String> & CaseIterable & Equatable>(
    _ text: String, of option: String
  ) throws(UsageError) -> [Name] {
    var names: [Name] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      guard let name = Name(rawValue: String(part)) else {
        let known = Name.allCases.map(\.rawValue).joined(separator: ", ")
        throw UsageError(description: "\(option): \(part) is not one of \(known)")
      }
      if !names.contains(name) { names.append(name) }
    }
    return names
  }
}
