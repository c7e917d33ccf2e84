internal import CairnStore

/// One load that is under way, whatever is loaded: what other loads may wait for.
final class LoadNode: Sendable {
  /// The load that the current task was started by, whether that waits for it or not.
  @TaskLocal static var starter: LoadNode?

  /// The load that cannot end before the current task does.
  static var waiting: LoadNode? {
    guard let starter, LoadExecutor.isPreferred else { return nil }
    return starter
  }
}

/// Which loads wait for which, so that a circle is an error and no standstill.
///
/// One for all caches, since a loader may use several. A load waits for what its loader asks for, itself or in
/// child tasks, as long as they wait. A task that the loader started otherwise is not known to be awaited, so what
/// it asks for is not entered.
enum LoadGraph {
  private static let edges = Lock<[ObjectIdentifier: [ObjectIdentifier: Int]]>([:])

  /// Notes that a load waits for another.
  ///
  /// - Returns: `false`, and notes nothing, where the other waits for the first, itself or through more.
  static func add(_ waiting: LoadNode, waitsFor other: LoadNode) -> Bool {
    let start = ObjectIdentifier(waiting)
    return edges.withLock { edges in
      var seen: Set<ObjectIdentifier> = []
      var open = [ObjectIdentifier(other)]
      while let node = open.popLast() {
        if node == start { return false }
        if seen.insert(node).inserted { open += edges[node, default: [:]].keys }
      }
      edges[start, default: [:]][ObjectIdentifier(other), default: 0] += 1
      return true
    }
  }

  static func remove(_ waiting: LoadNode, waitsFor other: LoadNode) {
    let (start, end) = (ObjectIdentifier(waiting), ObjectIdentifier(other))
    edges.withLock { edges in
      let count = edges[start]?[end] ?? 0
      edges[start]?[end] = count > 1 ? count - 1 : nil
      if edges[start]?.isEmpty ?? false { edges[start] = nil }
    }
  }

  /// For tests: how many waits are noted.
  static var count: Int { edges.withLock { $0.count } }
}
