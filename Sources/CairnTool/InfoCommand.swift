import Cairn
import CommandText

/// `info`: shows the attributes of one key.
enum InfoCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let key = try invocation.key(at: 1)
    let (found, isLive) = try location.read(on: console) { store in
      (try store.info(forKey: key), store.isFollowing)
    }
    guard let info = found else { throw ValueCommands.notFound(key) }
    if invocation.has(.json) {
      try console.print(json(key, info, isLive: isLive).text)
    } else {
      for (label, text) in rows(key, info, isLive: isLive) {
        try console.tell(
          label + String(repeating: " ", count: 13 - label.count) + text, indent: 13)
      }
    }
  }

  /// - Parameter isLive: whether another process has the store open. Only that process knows the
  ///   time of the last access.
  private static func rows(
    _ key: [UInt8], _ info: EntryInfo, isLive: Bool
  ) -> [(String, String)] {
    [
      ("key", DisplayText.line(key)),
      ("version", "\(info.version)"),
      ("value", DisplayText.exactSize(info.valueByteCount)),
      ("metadata", DisplayText.exactSize(info.metadataByteCount)),
      ("written", info.written.description),
      ("last access", isLive ? "known to the other process" : info.accessed.description),
      ("expires", info.expires?.description ?? "-"),
      ("idle limit", info.idleLimit.map { DisplayText.duration($0) } ?? "-"),
      ("cost", info.givenCost.map { "\($0)" } ?? "-"),
    ]
  }

  private static func milliseconds(_ duration: Duration) -> Int {
    let (seconds, attoseconds) = duration.components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    return overflow ? .max : Int(clamping: product) &+ Int(attoseconds / 1_000_000_000_000_000)
  }

  private static func json(_ key: [UInt8], _ info: EntryInfo, isLive: Bool) -> JSON {
    .object([
      JSON.member(key: key),
      ("version", .integer(Int(clamping: info.version))),
      ("valueBytes", .integer(info.valueByteCount)),
      ("metadataBytes", .integer(info.metadataByteCount)),
      ("written", .string(info.written.description)),
      ("accessed", .optional(isLive ? nil : info.accessed.description)),
      ("expires", .optional(info.expires?.description)),
      (
        "idleLimitMilliseconds",
        info.idleLimit.map { .integer(milliseconds($0)) } ?? .null
      ),
      ("cost", info.givenCost.map { .integer(Int(clamping: $0)) } ?? .null),
    ])
  }
}
