/// A number in the statistics of a store or a cache, for a metrics library.
public struct Metric: Sendable, Hashable {
  /// The name, such as `hits` or `memory.hits`.
  public let name: String
  /// The number. Durations are in seconds.
  public package(set) var value: Double
  /// Whether the number only grows. Otherwise it is a gauge, which can go up and down.
  public let isCounter: Bool

  package init(_ name: String, _ value: Double, isCounter: Bool = true) {
    self.name = name
    self.value = value
    self.isCounter = isCounter
  }

  package init(_ name: String, _ value: some BinaryInteger, isCounter: Bool = true) {
    self.init(name, Double(value), isCounter: isCounter)
  }
}
