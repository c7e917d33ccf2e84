import Cairn
import Configuration

/// An invalid or missing setting.
public struct SettingError: Error, Hashable, CustomStringConvertible {
  /// The key, such as `cache.byteLimit`, which is `CACHE_BYTE_LIMIT` in the environment.
  public var key: String
  /// The value; `nil` if there is none, or if it is a list.
  public var value: String?
  /// Why the value is invalid, or which values are valid.
  public var reason: String

  public var description: String { "\(key): \(value.map { "“\($0)” " } ?? "")\(reason)" }
}

/// The settings below one key.
struct Section {
  let name: String
  let reader: ConfigReader

  /// The value of a key as text; `nil` if there is none.
  func text(_ key: String) throws(SettingError) -> String? {
    let path = ConfigKey("\(name).\(key)")
    // A file may have numbers; the environment has only text.
    if let number = reader.int(forKey: path) { return String(number) }
    if let text = reader.string(forKey: path) { return text }
    if let number = reader.double(forKey: path) {
      throw error(key, String(number), "is no whole number")
    }
    if reader.intArray(forKey: path) != nil || reader.stringArray(forKey: path) != nil {
      throw error(key, nil, "is a list")
    }
    return nil
  }

  func error(_ key: String, _ value: String?, _ reason: String) -> SettingError {
    SettingError(key: "\(name).\(key)", value: value, reason: reason)
  }

  /// The value of a key that must be set.
  func required(_ key: String) throws(SettingError) -> String {
    guard let text = try text(key), !text.isEmpty else { throw error(key, nil, "must be set") }
    return text
  }

  /// A count, such as `10000`.
  func count(_ key: String) throws(SettingError) -> Int? {
    try parsed(key, "must be a whole number from 0, such as 10000") { Self.number($0, [("", 1)]) }
  }

  /// A number of bytes, such as `1048576`, `64MiB` or `1GiB`.
  func byteCount(_ key: String) throws(SettingError) -> Int? {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40), ("", 1)]
    return try parsed(key, "must be a number of bytes, such as 64MiB or 1GiB") {
      Self.number($0, units)
    }
  }

  /// A duration, such as `250ms`, `30s`, `10m`, `12h` or `7d`.
  func duration(_ key: String) throws(SettingError) -> Duration? {
    let units = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)]
    return try parsed(key, "must be a duration with a unit, such as 250ms, 30s, 10m, 12h or 7d") {
      Self.number($0, units).map { .milliseconds($0) }
    }
  }

  /// `process`, `durable`, or a duration: the interval between syncs.
  func durability(_ key: String) throws(SettingError) -> Durability? {
    switch try text(key) {
    case nil: return nil
    case "process": return .process
    case "durable": return .durable
    case let text?:
      guard let interval = try? duration(key), interval > .zero else {
        throw error(key, text, "must be process, durable, or an interval such as 1s")
      }
      return .interval(interval)
    }
  }

  private func parsed<Value>(
    _ key: String, _ reason: String, _ parse: (String) -> Value?
  ) throws(SettingError) -> Value? {
    guard let text = try text(key) else { return nil }
    guard let value = parse(text) else { throw error(key, text, reason) }
    return value
  }

  /// Parses a number with a unit, and converts it to the smallest unit. Returns `nil` if the text
  /// is invalid or the number too large.
  private static func number(_ text: String, _ units: [(name: String, size: Int)]) -> Int? {
    for unit in units where text.hasSuffix(unit.name) {
      let digits = text.dropLast(unit.name.count)
      guard let number = Int(digits), number >= 0 else { continue }
      let (product, overflow) = number.multipliedReportingOverflow(by: unit.size)
      return overflow ? nil : product
    }
    return nil
  }
}
