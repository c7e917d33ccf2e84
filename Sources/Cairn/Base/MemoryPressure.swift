/// How short of memory the system is, or the container that the program runs in.
public enum MemoryPressure: Int, Sendable, Hashable, Comparable, CaseIterable {
  /// Memory is being reclaimed at some cost. Caches drop what has expired.
  case moderate = 1
  /// Programs wait for memory. Caches drop half of what they hold.
  case high
  /// Hardly anything else goes on, or processes are about to be killed. Caches are cleared.
  case critical

  /// Whether memory is less short on the left than on the right.
  public static func < (left: MemoryPressure, right: MemoryPressure) -> Bool {
    left.rawValue < right.rawValue
  }
}

/// Where the news comes from that memory is short.
package protocol PressureSource: Sendable {
  /// Waits until memory is short, and says how much so; `nil`: nothing more will come.
  func next() -> MemoryPressure?
}

/// What makes itself smaller when memory is short.
package protocol PressureResponder: AnyObject, Sendable {
  func respond(to pressure: MemoryPressure)
}
