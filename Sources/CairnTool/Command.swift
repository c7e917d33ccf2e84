/// The commands of `cairn`, in the order of the help.
enum Command: String, CaseIterable {
  case put, get, info, delete, increment, expire, keys, dump, load
  case stats, top, verify, salvage, trim, compact, backup, `import`, export
  case completions, version, help

  /// Everything that the help says about the command.
  var page: CommandPage {
    switch self {
    case .put: .put
    case .get: .get
    case .info: .info
    case .delete: .delete
    case .increment: .increment
    case .expire: .expire
    case .keys: .keys
    case .dump: .dump
    case .load: .load
    case .stats: .stats
    case .top: .top
    case .verify: .verify
    case .salvage: .salvage
    case .trim: .trim
    case .compact: .compact
    case .backup: .backup
    case .import: .import
    case .export: .export
    case .completions: .completions
    case .version: .version
    case .help: .help
    }
  }
}

/// The options, which begin with two dashes.
enum Option: String, CaseIterable {
  case lifetime, metadata, counter, prefix, long, tree, limit, json, decode, count, bytes, expired
  case order, rate, interval, wait, histograms, man, color, help, version
  case ifAbsent = "if-absent"
  case keyFormat = "key-format"
  case olderThan = "older-than"
  case unusedFor = "unused-for"

  /// Alternative names of options, which the help does not show.
  static let synonyms: [String: Option] = ["ttl": .lifetime, "colour": .color]

  /// The options that every command takes.
  static let common: [OptionUse] = [
    OptionUse(
      .color,
      "colour and bold; auto, the default, uses them on a terminal, unless TERM is dumb or NO_COLOR is set; CLICOLOR_FORCE=1 uses them in a pipe too"
    ),
    OptionUse(.help, "explain the command"),
  ]

  /// The words that the option's value can be; empty if the value can be anything.
  var choices: [String] {
    switch self {
    case .keyFormat: KeyFormat.allCases.map(\.rawValue)
    case .decode: ["percent", "none"]
    case .order: ["lru", "largest"]
    case .color: ["auto", "always", "never"]
    default: []
    }
  }

  /// The name of the option's value in the help, or `nil` if the option takes none.
  var valueName: String? {
    switch self {
    case .lifetime, .olderThan, .unusedFor, .interval, .wait: "TIME"
    case .metadata: "TEXT"
    case .prefix: "P"
    case .limit, .count: "N"
    case .bytes, .rate: "SIZE"
    case .keyFormat, .decode, .order, .color: choices.joined(separator: "|")
    case .ifAbsent, .counter, .long, .tree, .json, .expired, .histograms, .man, .help, .version: nil
    }
  }

  var takesValue: Bool { valueName != nil }

  /// The option as the help shows it: `--count N`.
  var synopsis: String { "--\(rawValue)" + (valueName.map { " \($0)" } ?? "") }
}
