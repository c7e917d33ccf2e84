/// A fuzzer's counts by name, in the order of first use.
package struct Tally: Sendable, CustomStringConvertible {
  private var names: [String] = []
  private var counts: [String: Int] = [:]

  package init() {}

  package subscript(name: String) -> Int {
    get { counts[name] ?? 0 }
    set {
      if counts[name] == nil { names.append(name) }
      counts[name] = newValue
    }
  }

  package mutating func add(_ other: Tally) {
    for name in other.names { self[name] += other[name] }
  }

  package var description: String { names.map { "\(self[$0]) \($0)" }.joined(separator: ", ") }
}
