import Cairn
import CommandText

/// `trim`: removes entries by count, size, age or expiry.
enum TrimCommand {
  private static let goals: [Option] = [.count, .bytes, .olderThan, .unusedFor, .expired]

  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let given = goals.filter { invocation.has($0) }
    if given.count > 1 { throw invocation.usage("only one of \(list(given)) may be given") }
    guard let goal = given.first else {
      throw invocation.usage("one of \(list(goals)) is needed")
    }
    guard !invocation.has(.order) || goal == .count || goal == .bytes else {
      throw invocation.usage("--order needs --count or --bytes")
    }
    let trim = try trim(invocation)
    let summary = try location.write(StoreLocation.forMany(createsStore: false)) { store in
      try store.trim(trim)
    }
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

  private static func list(_ options: [Option]) -> String {
    let names = options.map { "--\($0.rawValue)" }
    return names.dropLast().joined(separator: ", ") + " and \(names[names.count - 1])"
  }

  private static func order(_ text: [UInt8]) -> TrimOrder? {
    switch String(decoding: text, as: UTF8.self) {
    case "lru": .leastRecentlyUsed
    case "largest": .largestFirst
    default: nil
    }
  }

  private static func trim(_ invocation: Invocation) throws -> Trim {
    let order =
      try invocation.value(of: .order, TrimCommand.order, "lru or largest") ?? .leastRecentlyUsed
    if let count = try invocation.value(
      of: .count, Quantity.wholeNumber, "a whole number from 0, such as 5000")
    {
      return .toCount(count, order: order)
    }
    if let byteCount = try invocation.value(
      of: .bytes, Quantity.byteCount, Quantity.byteCountKind)
    {
      return .toBytes(byteCount, order: order)
    }
    if let age = try invocation.duration(of: .olderThan) { return .older(than: age) }
    if let time = try invocation.duration(of: .unusedFor) { return .unused(for: time) }
    return .expired
  }
}
