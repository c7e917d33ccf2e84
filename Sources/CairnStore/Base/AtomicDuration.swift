internal import Synchronization

/// A default duration for entries that set none. Any thread may read or set it.
struct AtomicDuration: ~Copyable, Sendable {
  /// In milliseconds; `Int64.max` for none.
  private let count: Atomic<Int64>

  init(_ duration: Duration?) { count = Atomic(duration?.milliseconds ?? .max) }

  /// In whole milliseconds, or `nil` for none.
  var milliseconds: Int64? {
    @inline(__always) get {
      let count = count.load(ordering: .relaxed)
      return count == .max ? nil : count
    }
  }

  /// Rounded down to milliseconds, or `nil` for none.
  var value: Duration? {
    get { milliseconds.map { .milliseconds($0) } }
    nonmutating set { count.store(newValue?.milliseconds ?? .max, ordering: .relaxed) }
  }
}
