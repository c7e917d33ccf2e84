internal import CairnStore

/// One load in progress, of any type, that other loads can wait for.
final class LoadNode: Sendable {
  /// The load that started the current task, even if the load does not wait for the task.
  @TaskLocal static var starter: LoadNode?

  /// The load that cannot end before the current task does.
  static var waiting: LoadNode? {
    guard let starter, LoadExecutor.isPreferred else { return nil }
    return starter
  }
}

/// Records which loads wait for each other, so that a cycle causes an error instead of a deadlock.
///
/// All caches share one graph, because a loader may use several. A load waits for every value that
/// its loader requests, directly or in child tasks. If the loader starts a task in another way, the
/// graph cannot tell whether the load awaits that task, so it omits the task's requests.
enum LoadGraph {
  static let edges = Lock<[ObjectIdentifier: [ObjectIdentifier: Int]]>(
    [:], isOfProcess: true)

  /// Records that one load waits for another.
  ///
  /// - Returns: `false`, without recording anything, if `other` waits for `waiting`, directly or
  ///   indirectly.
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
}
