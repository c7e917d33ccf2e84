/// What the command line asks for.
struct BenchOptions: Sendable, Equatable {
  var isQuick = false
  /// Whether the same rows are measured with ever more keys.
  var isScale = false
  /// `nil`: the stores that stand side by side by default.
  var stores: [StoreKind]?
  /// `nil`: all.
  var workloads: [Workload]?
  /// `nil`: a number that suits the size of the values.
  var keyCount: Int?
  /// `nil`: the four default sizes.
  var valueByteCount: Int?
  var seed: UInt64 = 1
  /// Where the stores' temporary directory is made; `nil`: see `RunDirectory`.
  var directory: String?
  var jsonPath: String?
  var svgPath: String?

  /// Whether nothing narrows the run, so that the section at a million keys belongs to it.
  var includesReferenceSection: Bool {
    !isQuick && !isScale && stores == nil && workloads == nil && keyCount == nil
      && valueByteCount == nil
  }

  /// Whether the caches in memory belong to the run.
  var includesMemorySections: Bool {
    !isScale && stores == nil && workloads == nil && keyCount == nil && valueByteCount == nil
  }

  static let usage = """
    usage: cairn-bench [--quick | --scale] [--stores S,...] [--workloads W,...] [--n N] [--value-bytes V]
                       [--seed S] [--dir DIR] [--json FILE] [--svg FILE] [--help]

      --quick          a few seconds with few keys: checks correctness, measures nothing
      --scale          the cost of an operation, memory, opening and compaction at 10,000 to
                       10,000,000 keys, or those of --n, of 100 bytes; takes minutes, 4 GiB of memory
                       and of disk
      --stores         of \(StoreKind.allCases.map(\.rawValue).joined(separator: ", "))
                       (default: cairn,file-per-key)
      --workloads      of \(wrapped(Workload.allCases.map(\.rawValue)))
                       (default: all)
      --n              number of keys, for every value size (default: by size, at most 50,000)
      --value-bytes    bytes of a value (default: 100, 1024, 16384 and 262144 in turn)
      --seed           of keys, values and orders (default: 1)
      --dir            where the stores are made, and removed at the end
                       (default: $TMPDIR, or the current directory)
      --json, --svg    files to write the results and a chart to
    """

  /// Names in lines that fit the usage text.
  private static func wrapped(_ names: [String]) -> String {
    var lines = [""]
    for name in names {
      if lines[lines.count - 1].count + name.count > 60 { lines.append("") }
      lines[lines.count - 1] += (lines[lines.count - 1].isEmpty ? "" : " ") + name
    }
    return lines.joined(separator: "\n                       ")
  }
}

/// What the command line got wrong.
struct UsageError: Error, Equatable, CustomStringConvertible {
  var description: String
}

extension BenchOptions {
  /// Reads the arguments after the command's name. `nil`: help is wanted.
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
      switch name {
      case "--help", "-h": return nil
      case "--quick":
        guard inlineValue == nil else {
          throw UsageError(description: "--quick takes no value")
        }
        options.isQuick = true
      case "--scale":
        guard inlineValue == nil else {
          throw UsageError(description: "--scale takes no value")
        }
        options.isScale = true
      case "--stores": options.stores = try names(try value(), of: name)
      case "--workloads": options.workloads = try names(try value(), of: name)
      case "--n": options.keyCount = try number(try value(), of: name, in: 1...100_000_000)
      case "--value-bytes":
        options.valueByteCount = try number(try value(), of: name, in: 1...(1 << 28))
      case "--seed": options.seed = try number(try value(), of: name, in: 0...UInt64.max)
      case "--dir": options.directory = try value()
      case "--json": options.jsonPath = try value()
      case "--svg": options.svgPath = try value()
      default: throw UsageError(description: "unknown argument: \(argument)")
      }
    }
    if options.isQuick && options.isScale {
      throw UsageError(description: "--quick and --scale are two different runs")
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

  private static func names<Name: RawRepresentable<String> & CaseIterable & Equatable>(
    _ text: String, of option: String
  ) throws(UsageError) -> [Name] {
    var names: [Name] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      guard let name = Name(rawValue: String(part)) else {
        let known = Name.allCases.map(\.rawValue).joined(separator: ", ")
        throw UsageError(description: "\(option): \(part) is none of \(known)")
      }
      if !names.contains(name) { names.append(name) }
    }
    return names
  }
}
