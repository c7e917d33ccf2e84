import Synchronization

/// Collects the messages of a store's log.
typealias Messages = Collected<String>

/// Collects the reports of a store.
final class Collected<Element: Sendable>: Sendable {
  private let elements = Mutex<[Element]>([])
  var all: [Element] { elements.withLock { $0 } }
  func add(_ element: Element) { elements.withLock { $0.append(element) } }
}
