/// How short of memory the system or the program's container is.
public enum MemoryPressure: Sendable, Hashable, Comparable, CaseIterable {
  /// Memory has become scarce. Caches drop expired entries.
  case moderate
  /// Programs wait for memory. Caches drop half of their entries.
  case high
  /// Programs make hardly any progress, or the system may soon kill processes. Caches drop all
  /// entries.
  case critical
}

/// A source of reports of memory shortages.
package protocol PressureSource: Sendable {
  /// Waits until memory is short, and returns the level. `nil` means that no more reports will
  /// follow.
  func next() -> MemoryPressure?
}

/// An object that can free memory when memory is short.
package protocol PressureResponder: AnyObject, Sendable {
  func respond(to pressure: MemoryPressure)
}
