import Cairn
import CommandText

/// An entry as an object of JSON, as `get --json` and `dump` write it and `load` reads it.
struct EntryText {
  private(set) var key: [UInt8] = []
  private(set) var value: [UInt8] = []
  /// The metadata, the lifetime, the idle limit and the cost.
  private(set) var options = EntryOptions(lifetime: .unlimited)

  /// What is wrong with a line.
  struct Failure: Error {
    let reason: String
    /// The bytes before the wrong one, if it is known.
    var offset: Int?
  }

  // MARK: Writing

  static func object(of entry: ByteEntry, isLive: Bool) -> JSON {
    .object(
      [JSON.member("key", entry.key), JSON.member("value", entry.value)]
        + members(of: entry.info, metadata: entry.metadata, isLive: isLive))
  }

  /// Everything about an entry but the key and the value.
  ///
  /// - Parameter isLive: whether another process has the store open. Only that process knows the
  ///   time of the last access.
  static func members(
    of info: EntryInfo, metadata: [UInt8], isLive: Bool
  ) -> [(String, JSON)] {
    [
      ("version", .integer(Int(clamping: info.version))),
      ("valueBytes", .integer(info.valueByteCount)),
      JSON.member("metadata", metadata),
      ("written", .string(info.written.description)),
      ("accessed", .optional(isLive ? nil : info.accessed.description)),
      ("expires", .optional(info.expires?.description)),
      ("idleLimitSeconds", .seconds(info.idleLimit)),
      ("cost", info.givenCost.map { .integer($0) } ?? .null),
    ]
  }

  // MARK: Reading

  init(reading line: [UInt8]) throws(Failure) {
    let members: [(name: String, value: JSONReader.Value)]
    do throws(JSONReader.Failure) { members = try JSONReader.members(of: line) } catch {
      throw Failure(reason: error.reason, offset: error.offset)
    }
    var seen: Set<Substring> = []
    for (name, value) in members {
      let part = name.hasSuffix("Base64") ? name.dropLast(6) : name[...]
      guard seen.insert(part).inserted else { throw Failure(reason: "\(part) occurs twice") }
      switch name {
      case "key", "keyBase64": key = try Self.bytes(name, value)
      case "value", "valueBase64": self.value = try Self.bytes(name, value)
      case "metadata", "metadataBase64": options.metadata = try Self.bytes(name, value)
      case "expires":
        if value != .null { options.lifetime = .until(try Self.time(name, value)) }
      case "idleLimitSeconds":
        if value != .null { options.idleLimit = try Self.duration(name, value) }
      case "cost":
        if value != .null { options.cost = try Self.number(name, value) }
      // The store sets these itself.
      case "version", "valueBytes", "written", "accessed": break
      default: throw Failure(reason: "unknown member \(name)")
      }
    }
    for name in ["key", "value"] where !seen.contains(Substring(name)) {
      throw Failure(reason: "\(name) is missing")
    }
    let limits = StoreConfiguration()
    if key.isEmpty { throw Failure(reason: "key must not be empty") }
    try Self.check("key", key, limits.keyByteLimit)
    try Self.check("value", value, limits.valueByteLimit)
    try Self.check("metadata", options.metadataBytes, limits.metadataByteLimit)
  }

  /// The most bytes that a valid line can have: an escaped byte takes six.
  static var lineByteLimit: Int {
    let limits = StoreConfiguration()
    return 6 * (limits.keyByteLimit + limits.valueByteLimit + limits.metadataByteLimit) + 4096
  }

  private static func check(_ name: String, _ bytes: [UInt8], _ limit: Int) throws(Failure) {
    guard bytes.count > limit else { return }
    let count = DisplayText.count(bytes.count)
    throw Failure(reason: "\(name) has \(count) bytes, more than \(DisplayText.count(limit))")
  }

  private static func bytes(_ name: String, _ value: JSONReader.Value) throws(Failure) -> [UInt8] {
    guard case .string(let text) = value else { throw Failure(reason: "\(name) must be a string") }
    guard name.hasSuffix("Base64") else { return text }
    guard let bytes = Base64.decode(text) else {
      throw Failure(reason: "\(name) must be \(KeyFormat.base64.kind)")
    }
    return bytes
  }

  private static func time(
    _ name: String, _ value: JSONReader.Value
  ) throws(Failure) -> Timestamp {
    guard case .string(let text) = value,
      let time = Timestamp(reading: String(decoding: text, as: UTF8.self))
    else {
      throw Failure(reason: "\(name) must be a time in UTC, such as \"2026-01-31T23:59:59Z\"")
    }
    return time
  }

  private static func duration(
    _ name: String, _ value: JSONReader.Value
  ) throws(Failure) -> Duration {
    guard case .number(let text) = value, let duration = Quantity.duration(text) else {
      throw Failure(reason: "\(name) must be a number of seconds above 0")
    }
    return duration
  }

  private static func number(_ name: String, _ value: JSONReader.Value) throws(Failure) -> Int {
    guard case .number(let text) = value, let number = Quantity.wholeNumber(text) else {
      throw Failure(reason: "\(name) must be a whole number")
    }
    return number
  }
}
