import Synchronization

/// An LRU cache in the style of XRCache: a dictionary of node objects, linked in access order by
/// weak references in both directions.
final class WeakNodeCache: MemoryPeer {
  static let name = StoreKind.weakNodes.rawValue

  private final class Node {
    let key: String
    var value: [UInt8]
    weak var newer: Node?
    weak var older: Node?

    init(key: String, value: [UInt8]) {
      self.key = key
      self.value = value
    }
  }

  private struct State: ~Copyable {
    var nodes: [String: Node] = [:]
    weak var newest: Node?
    weak var oldest: Node?

    mutating func addFirst(_ node: Node) {
      node.older = newest
      node.newer = nil
      newest?.newer = node
      newest = node
      if oldest == nil { oldest = node }
    }

    mutating func remove(_ node: Node) {
      let (newer, older) = (node.newer, node.older)
      if let newer { newer.older = older } else { newest = older }
      if let older { older.newer = newer } else { oldest = newer }
    }

    mutating func touch(_ node: Node) {
      if newest === node { return }
      remove(node)
      addFirst(node)
    }
  }

  private let state = Mutex(State())
  private let countLimit: Int

  init(countLimit: Int, at path: String) { self.countLimit = countLimit }

  static func key(_ text: String) -> String { text }

  func value(forKey key: String) -> [UInt8]? {
    state.withLock { state in
      guard let node = state.nodes[key] else { return nil }
      state.touch(node)
      return node.value
    }
  }

  func setValue(_ value: [UInt8], forKey key: String) {
    state.withLock { state in
      if let node = state.nodes[key] {
        node.value = value
        state.touch(node)
        return
      }
      let node = Node(key: key, value: value)
      state.nodes[key] = node
      state.addFirst(node)
      while state.nodes.count > countLimit, let oldest = state.oldest {
        state.remove(oldest)
        state.nodes[oldest.key] = nil
      }
    }
  }
}
