import Cairn

/// `trim`: removes entries by count, size, age or expiry.
enum TrimCommand {
  private static let goals: [Option] = [.count, .bytes, .olderThan, .expired]

  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try StoreLocation(argument: invocation.operands[0])
    let given = goals.filter { invocation.has($0) }
    guard given.count == 1, let goal = given.first else {
      throw invocation.usage("one of --count, --bytes, --older-than and --expired is needed")
    }
    let trim = try removal(goal, invocation)
    var configuration = StoreConfiguration()
    configuration.createsStore = false
    // One sync, by closing, serves all removals.
    configuration.durability = .process
    let summary = try location.write(configuration) { store in try trim(store) }
    if invocation.has(.json) {
      try console.print(
        JSON.object([
          ("removed", .integer(summary.count)), ("removedBytes", .integer(summary.byteCount)),
          ("damaged", .integer(summary.damagedCount)),
        ]).text)
    } else {
      try console.print(
        "removed \(DisplayText.count(summary.count, "key")), "
          + DisplayText.exactSize(summary.byteCount))
    }
    if summary.damagedCount > 0 {
      console.report(
        CommandFailure(
          .corrupt,
          "\(DisplayText.count(summary.damagedCount, "damaged record")) could not be removed; "
            + "see cairn verify"))
    }
  }

  private static func removal(
    _ goal: Option, _ invocation: Invocation
  ) throws -> (Store) throws -> RemovalSummary {
    let text = invocation.options[goal] ?? []
    switch goal {
    case .count, .bytes:
      guard let number = number(text) else {
        throw invocation.usage(
          "--\(goal.rawValue) must be a whole number, not \(DisplayText.line(text))")
      }
      return { try goal == .count ? $0.trim(toCount: number) : $0.trim(toBytes: number) }
    case .olderThan:
      guard let age = Lifetime.parse(text) else {
        throw invocation.usage(
          "--older-than must be decimal seconds above 0, not \(DisplayText.line(text))")
      }
      // A tool that reads a store leaves no trace, so what it reads does not keep anything alive.
      return { try $0.trim(olderThan: age, by: .write) }
    default: return { try $0.removeExpired() }
    }
  }

  /// Reads decimal digits; `nil` for anything else, and for what is too large.
  private static func number(_ text: [UInt8]) -> Int? {
    guard !text.isEmpty,
      text.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return Int(String(decoding: text, as: UTF8.self))
  }
}
