/// Metrics as text in Prometheus's exposition format 0.0.4, which a server returns for a scrape.
///
/// Each name appears once, with its help, its type and all its samples, as the format requires.
package struct PrometheusText: Sendable {
  package typealias Sample = (labels: KeyValuePairs<String, String>, value: Double)

  package private(set) var text = ""
  private let prefix: String

  /// - Parameter prefix: begins each name. Characters that a name may not contain become `_`.
  package init(prefix: String) { self.prefix = Self.name(prefix) }

  /// A number that only grows, whose name ends in `_total`, or one that can go up and down.
  package mutating func add(
    _ name: String, _ help: String, isCounter: Bool = false, _ samples: [Sample]
  ) {
    add(
      isCounter ? "\(name)_total" : name, isCounter ? "counter" : "gauge", help,
      samples.map { ("", $0) })
  }

  /// A distribution of durations, in seconds.
  ///
  /// - Parameters:
  ///   - bounds: the upper bounds of the buckets, except the last, which has none.
  ///   - counts: the count of each bucket alone; missing counts are zero.
  ///   - sum: the sum of all durations.
  package mutating func histogram(
    _ name: String, _ help: String, bounds: [Duration], counts: [UInt64], sum: Duration
  ) {
    let ends = bounds.map { "\($0.inSeconds)" } + ["+Inf"]
    var count: UInt64 = 0
    var samples: [(suffix: String, sample: Sample)] = []
    for (index, end) in ends.enumerated() {
      if index < counts.count { count &+= counts[index] }
      samples.append(("_bucket", (["le": end], Double(count))))
    }
    samples.append(("_sum", ([:], sum.inSeconds)))
    samples.append(("_count", ([:], Double(count))))
    add(name, "histogram", help, samples)
  }

  private mutating func add(
    _ name: String, _ type: String, _ help: String, _ samples: [(suffix: String, sample: Sample)]
  ) {
    if samples.isEmpty { return }
    let name = prefix.isEmpty ? name : "\(prefix)_\(name)"
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
    for (suffix, (labels, value)) in samples {
      let list = labels.map { "\($0.key)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",")
      text += "\(name)\(suffix)\(list.isEmpty ? "" : "{\(list)}") \(Self.shown(value))\n"
    }
  }

  /// The name of a metric, such as `liveBytes`, as in Prometheus: `live_bytes`.
  package static func words(_ name: String) -> String {
    name.map { $0.isUppercase ? "_\($0.lowercased())" : "\($0)" }.joined()
  }

  private static func shown(_ value: Double) -> String {
    Int64(exactly: value).map { "\($0)" } ?? "\(value)"
  }

  private static func name(_ text: String) -> String {
    let name = text.unicodeScalars.map { scalar -> Character in
      switch scalar {
      case "a"..."z", "A"..."Z", "0"..."9", "_", ":": Character(scalar)
      default: "_"
      }
    }
    return (name.first?.isNumber == true ? "_" : "") + String(name)
  }

  /// Works on scalars, because a line feed may be part of a character.
  private static func escaped(_ value: String) -> String {
    value.unicodeScalars.reduce(into: "") { text, scalar in
      switch scalar {
      case "\\": text += "\\\\"
      case "\"": text += "\\\""
      case "\n": text += "\\n"
      default: text.unicodeScalars.append(scalar)
      }
    }
  }
}

extension Duration {
  /// The duration in seconds.
  package var inSeconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}
