internal import Synchronization

/// The default duration of entries that set none. Any thread may read and set it.
struct AtomicDuration: ~Copyable, Sendable {
  /// `Int64.max`: none.
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
