import FuzzSupport
import Synchronization

/// A protocol of the store or the caches: its functions as they are in the sources, and small
/// programs of the same steps.
struct WeakMemoryProtocol: Sendable, CustomStringConvertible {
  let name: String
  let functions: [String: Transcription]
  /// Weaker orders that would do too, with the reasons.
  let spare: [String: String]
  /// Mistakes other than a weaker order.
  let mistakes: [String]
  let configurations: [@Sendable (Steps) -> MemoryModel]

  init(
    _ name: String, _ functions: [String: Transcription], spare: [String: String] = [:],
    mistakes: [String] = [], _ configurations: [@Sendable (Steps) -> MemoryModel]
  ) {
    self.name = name
    self.functions = functions
    self.spare = spare
    self.mistakes = mistakes
    self.configurations = configurations
  }

  var description: String { name }

  /// One order of one operation.
  struct Place: Hashable, Sendable {
    var function: String
    var operation: Int
    /// 0 for success, 1 for failure.
    var part = 0
  }

  /// The orders with which the programs of a protocol are built.
  struct Steps: Sendable {
    fileprivate(set) var orders: [Place: MemoryModel.Order]
    var mistake: String?
    /// The operations that the programs contain.
    fileprivate let used = Used()

    fileprivate final class Used: Sendable {
      let places = Mutex<Set<Place>>([])
    }

    /// The order of an operation of a function.
    func callAsFunction(_ function: String, _ operation: Int) -> MemoryModel.Order {
      order(Place(function: function, operation: operation))
    }

    /// Its order if it fails to exchange.
    func failing(_ function: String, _ operation: Int) -> MemoryModel.Order {
      let place = Place(function: function, operation: operation, part: 1)
      if orders[place] != nil { return order(place) }
      switch self(function, operation) {
      case .acquireRelease, .acquire: return .acquire
      case .sequential: return .sequential
      case .release, .relaxed: return .relaxed
      }
    }

    private func order(_ place: Place) -> MemoryModel.Order {
      used.places.withLock { _ = $0.insert(place) }
      guard let order = orders[place] else { preconditionFailure("no operation \(place)") }
      return order
    }
  }

  /// The steps as the sources have them.
  var steps: Steps {
    var orders: [Place: MemoryModel.Order] = [:]
    for (name, function) in functions {
      for (index, parts) in function.orders.enumerated() {
        for (part, order) in parts.enumerated() {
          orders[Place(function: name, operation: index, part: part)] = order
        }
      }
    }
    return Steps(orders: orders)
  }

  /// What goes wrong in a configuration with these steps, if anything.
  func counterexample(_ steps: Steps) -> MemoryExploration.Counterexample? {
    for configuration in configurations {
      if let found = configuration(steps).explore().counterexample { return found }
    }
    return nil
  }

  /// Weakens each order in turn, step by step as long as nothing goes wrong. Returns the weakenings
  /// that do no harm, and how many do.
  func weaken() -> (harmless: Set<String>, caughtCount: Int) {
    var harmless: Set<String> = []
    var caughtCount = 0
    let uses = configurations.map { configuration in
      let steps = steps
      _ = configuration(steps)
      return (places: steps.used.places.withLock { $0 }, configuration)
    }
    for (place, order) in steps.orders {
      guard let operation = functions[place.function]?.operations[place.operation] else { continue }
      let concerned = uses.filter { $0.places.contains(place) }.map(\.1)
      var open = Self.weaker(order, in: operation)
      while let order = open.popLast() {
        let part = place.part == 0 ? "" : "failing "
        let name = "\(place.function) \(place.operation): \(operation) → \(part)\(order)"
        if harmless.contains(name) { continue }
        var weaker = steps
        weaker.orders[place] = order
        if concerned.contains(where: { $0(weaker).explore().counterexample != nil }) {
          caughtCount += 1
        } else {
          harmless.insert(name)
          open += Self.weaker(order, in: operation)
        }
      }
    }
    return (harmless, caughtCount)
  }

  private static func weaker(
    _ order: MemoryModel.Order, in operation: String
  ) -> [MemoryModel.Order] {
    let kind = operation.prefix { $0 != " " }
    switch order {
    // A call that orders everything is there or not.
    case .sequential where !operation.contains("sequential"): return [.relaxed]
    case .sequential where kind.hasPrefix("load"): return [.acquire]
    case .sequential where kind.hasPrefix("store"): return [.release]
    case .sequential: return [.acquireRelease]
    case .acquireRelease: return [.acquire, .release]
    case .acquire, .release: return [.relaxed]
    case .relaxed: return []
    }
  }
}
