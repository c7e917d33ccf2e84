import Synchronization

/// Collects what a store tells its log.
typealias Messages = Collected<String>

/// Collects what a store tells.
final class Collected<Element: Sendable>: Sendable {
  private let elements = Mutex<[Element]>([])
  var all: [Element] { elements.withLock { $0 } }
  func add(_ element: Element) { elements.withLock { $0.append(element) } }
}
