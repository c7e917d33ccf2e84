/// The commands of `cairn`.
enum Command: String, CaseIterable {
  case put, get, info, delete, keys, stats, top, verify, scrub, salvage, trim, compact, backup
  case `import`, export
  case help

  /// The number of operands that it takes.
  var operandCounts: ClosedRange<Int> {
    switch self {
    case .put: 2...3
    case .get, .info, .salvage, .backup, .import, .export: 2...2
    case .delete: 2...Int.max
    case .keys, .stats, .top, .verify, .scrub, .trim, .compact: 1...1
    case .help: 0...1
    }
  }

  /// The names of its operands, in order. The last name of `delete` repeats.
  var operandNames: [String] {
    switch self {
    case .put: ["STORE", "KEY", "VALUE"]
    case .get, .info, .delete: ["STORE", "KEY"]
    case .keys, .stats, .top, .verify, .scrub, .trim, .compact: ["STORE"]
    case .salvage, .backup: ["STORE", "DESTINATION"]
    case .import, .export: ["STORE", "DIRECTORY"]
    case .help: ["COMMAND"]
    }
  }

  /// The options that it accepts besides `--help`.
  var options: Set<Option> {
    switch self {
    case .put: [.ttl]
    case .get, .delete, .help: []
    case .keys: [.prefix, .long, .json]
    case .info, .stats, .verify, .salvage, .compact, .backup, .export: [.json]
    case .top: [.count, .interval, .json]
    case .scrub: [.rate, .json]
    case .trim: [.count, .bytes, .olderThan, .expired, .order, .json]
    case .import: [.decode, .ttl, .json]
    }
  }
}

/// The options, which begin with two dashes.
enum Option: String, CaseIterable {
  case ttl, prefix, long, json, decode, count, bytes, expired, order, rate, interval, help, version
  case olderThan = "older-than"

  var takesValue: Bool {
    switch self {
    case .ttl, .prefix, .decode, .count, .bytes, .olderThan, .order, .rate, .interval: true
    case .long, .json, .expired, .help, .version: false
    }
  }
}
