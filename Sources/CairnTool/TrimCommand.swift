import Cairn
import CommandText

/// `trim`: removes entries by count, size, age or expiry.
enum TrimCommand {
  private static let goals: [Option] = [.count, .bytes, .olderThan, .expired]

  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let given = goals.filter { invocation.has($0) }
    if given.count > 1 {
      let names = given.map { "--\($0.rawValue)" }
      throw invocation.usage(
        "only one of \(names.dropLast().joined(separator: ", ")) and \(names[names.count - 1]) "
          + "may be given")
    }
    guard let goal = given.first else {
      throw invocation.usage("one of --count, --bytes, --older-than and --expired is needed")
    }
    guard !invocation.has(.order) || goal == .count || goal == .bytes else {
      throw invocation.usage("--order needs --count or --bytes")
    }
    try run(try removal(goal, invocation), in: location, invocation, on: console)
  }

  /// Removes expired entries, for `--expired` and for the command `expire`.
  static func removeExpired(
    in location: StoreLocation, _ invocation: Invocation, on console: Console
  ) throws {
    try run({ try $0.trim(.expired) }, in: location, invocation, on: console)
  }

  private static func run(
    _ removal: (Store) throws -> RemovalSummary, in location: StoreLocation,
    _ invocation: Invocation, on console: Console
  ) throws {
    var configuration = StoreConfiguration()
    configuration.maintenanceInterval = nil
    configuration.createsStore = false
    // One sync, when the store is closed, covers all removals.
    configuration.durability = .process
    let summary = try location.write(configuration, removal)
    if invocation.has(.json) {
      try console.print(
        JSON.object([
          ("removed", .integer(summary.count)), ("removedBytes", .integer(summary.cost)),
          ("damaged", .integer(summary.damagedCount)),
        ]).text)
    } else {
      try console.tell(
        "removed \(DisplayText.count(summary.count, "key")), "
          + DisplayText.exactSize(summary.cost)
          + (summary.cost >= 1 << 20 ? "; \(advice(location))" : ""))
    }
    if summary.damagedCount > 0 {
      console.report(
        CommandFailure(
          .corrupt,
          "\(DisplayText.count(summary.damagedCount, "damaged record")) could not be removed; "
            + "see cairn verify"))
    }
  }

  /// How to reclaim the space.
  private static func advice(_ location: StoreLocation) -> String {
    DiskUsage(location).isDiskNearlyFull
      ? "the disk is nearly full: see cairn help compact"
      : "cairn compact reclaims the space"
  }

  private static func order(_ text: [UInt8]) -> TrimOrder? {
    switch String(decoding: text, as: UTF8.self) {
    case "lru": .leastRecentlyUsed
    case "largest": .largestFirst
    default: nil
    }
  }

  private static func removal(
    _ goal: Option, _ invocation: Invocation
  ) throws -> (Store) throws -> RemovalSummary {
    let order =
      invocation.has(.order)
      ? try invocation.value(of: .order, TrimCommand.order, "lru or largest") : .leastRecentlyUsed
    switch goal {
    case .count:
      let count = try invocation.value(
        of: goal, Quantity.wholeNumber, "a whole number from 0, such as 5000")
      return { try $0.trim(.toCount(count, order: order)) }
    case .bytes:
      let byteCount = try invocation.value(
        of: goal, Quantity.byteCount, "a size, such as 5000, 10M or 2G")
      return { try $0.trim(.toBytes(byteCount, order: order)) }
    case .olderThan:
      let age = try invocation.value(
        of: goal, Quantity.duration, Quantity.durationKind)
      // Reads by a tool are not recorded, so the age counts from the last write.
      return { try $0.trim(.older(than: age)) }
    default: return { try $0.trim(.expired) }
    }
  }
}
