/// A text in Prometheus' exposition format 0.0.4, parsed by the rules of the format alone.
struct PrometheusPage {
  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  struct Sample: Hashable {
    var name: String
    var labels: [String: String]
  }

  struct Family: Hashable {
    var name: String
    var type: String
    var help: String
  }

  private(set) var families: [Family] = []
  private(set) var values: [Sample: Double] = [:]
  /// In the order of the text.
  private(set) var samples: [(sample: Sample, family: String)] = []

  /// The value of a sample, or `nil` if there is none.
  subscript(name: String, labels: [String: String]) -> Double? {
    values[Sample(name: name, labels: labels)]
  }

  subscript(name: String) -> Double? { self[name, [:]] }

  init(_ text: String) throws {
    guard text.isEmpty || text.hasSuffix("\n") else { throw Failure(description: "no end") }
    var help: (name: String, text: String)?
    for line in text.dropLast().split(separator: "\n", omittingEmptySubsequences: false) {
      if let match = line.wholeMatch(of: /# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)/) {
        if help != nil { throw Failure(description: "help without a type before \(line)") }
        help = (String(match.1), String(match.2))
      } else if let match = line.wholeMatch(
        of: /# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram|summary|untyped)/)
      {
        guard let text = help, text.name == match.1 else {
          throw Failure(description: "a type without help: \(line)")
        }
        if families.contains(where: { $0.name == match.1 }) {
          throw Failure(description: "twice: \(line)")
        }
        families.append(Family(name: text.name, type: String(match.2), help: text.text))
        help = nil
      } else if help == nil, let family = families.last {
        try add(line, of: family)
      } else {
        throw Failure(description: "neither a comment nor a sample: \(line)")
      }
    }
    if help != nil { throw Failure(description: "help without a type at the end") }
    for family in families { try check(family) }
  }

  private mutating func add(_ line: Substring, of family: Family) throws {
    guard
      let match = line.wholeMatch(
        of: /(?s)([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)(?: -?[0-9]+)?/),
      let value = Double(match.3)
    else { throw Failure(description: "no sample: \(line)") }
    let suffixes = family.type == "histogram" ? ["_bucket", "_sum", "_count"] : [""]
    guard suffixes.contains(where: { family.name + $0 == match.1 }) else {
      throw Failure(description: "not of \(family.name): \(line)")
    }
    let sample = Sample(name: String(match.1), labels: try Self.labels(match.2 ?? ""))
    guard values.updateValue(value, forKey: sample) == nil else {
      throw Failure(description: "twice: \(line)")
    }
    samples.append((sample, family.name))
  }

  private static func labels(_ text: Substring) throws -> [String: String] {
    var labels: [String: String] = [:]
    var rest = text
    while !rest.isEmpty {
      guard
        let match = rest.prefixMatch(
          of: /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^\\"\n]|\\[\\"n])*)"(?:,|$)/)
      else { throw Failure(description: "no labels: \(text)") }
      let value = match.2.replacing(/\\(.)/) { $0.1 == "n" ? "\n" : String($0.1) }
      guard labels.updateValue(String(value), forKey: String(match.1)) == nil else {
        throw Failure(description: "a label twice: \(text)")
      }
      rest = rest[match.range.upperBound...]
    }
    return labels
  }

  private func check(_ family: Family) throws {
    let own = samples.filter { $0.family == family.name }.map(\.sample)
    if own.isEmpty { throw Failure(description: "no sample of \(family.name)") }
    // What the documentation of the format and of metric names requires.
    if family.type == "counter" {
      guard family.name.hasSuffix("_total"), own.allSatisfy({ values[$0, default: -1] >= 0 }) else {
        throw Failure(description: "no counter: \(family.name)")
      }
    }
    guard family.type == "histogram" else { return }
    let buckets = own.filter { $0.name.hasSuffix("_bucket") }
    let bounds = buckets.map { Double($0.labels["le"] ?? "") ?? .nan }
    let counts = buckets.map { values[$0, default: .nan] }
    guard bounds.last == .infinity, counts.last == self["\(family.name)_count"],
      self["\(family.name)_sum"] != nil,
      zip(bounds, bounds.dropFirst()).allSatisfy({ $0 < $1 }),
      zip(counts, counts.dropFirst()).allSatisfy({ $0 <= $1 })
    else { throw Failure(description: "no histogram: \(family.name)") }
  }
}
