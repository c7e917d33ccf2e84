internal import Synchronization

/// A number that any thread may increment.
struct Counter: ~Copyable, Sendable {
  private let count = Atomic<UInt64>(0)

  var value: UInt64 { load() }

  /// Swift 6.2 calls methods of an array's element in place, but does not read its properties.
  func load() -> UInt64 { count.load(ordering: .relaxed) }

  func add(_ count: Int = 1) { self.count.wrappingAdd(UInt64(count), ordering: .relaxed) }
}
