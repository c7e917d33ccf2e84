internal import CairnStore

/// A removed value, on its way out of the lock.
@usableFromInline
struct RemovedEntry<Key: Sendable, Value: Sendable>: Sendable {
  @usableFromInline var key: Key
  @usableFromInline var value: Value
  @usableFromInline var cause: RemovalCause
  /// Whether the call that inserted the value did not keep it.
  @usableFromInline var isRefused: Bool

  @inlinable
  init(key: Key, value: Value, cause: RemovalCause, isRefused: Bool = false) {
    self.key = key
    self.value = value
    self.cause = cause
    self.isRefused = isRefused
  }
}

/// The entries that were removed under one hold of the lock. They are destroyed and reported after
/// the lock is released.
///
/// Not copyable, so that the last reference to a value is released in a known place.
@usableFromInline
struct RemovedEntries<Key: Sendable, Value: Sendable>: ~Copyable, Sendable {
  /// Separate, because most calls remove one entry or none, and an array needs an allocation.
  @usableFromInline var first: RemovedEntry<Key, Value>?
  @usableFromInline var others: [RemovedEntry<Key, Value>] = []

  @inlinable init() {}

  @inlinable
  var count: Int { first == nil ? 0 : 1 + others.count }

  @inlinable
  mutating func append(_ entry: RemovedEntry<Key, Value>) {
    if first == nil { first = entry } else { others.append(entry) }
  }

  @inlinable
  func forEach(_ body: (RemovedEntry<Key, Value>) -> Void) {
    if let first { body(first) }
    for entry in others { body(entry) }
  }
}

/// A box that carries a value to the place where it is destroyed.
final class Crate<Content: ~Copyable & Sendable>: Sendable {
  private let content: Lock<Content?>

  init(_ content: consuming Content) { self.content = Lock(content) }

  /// Destroys the content, here.
  func empty() {
    let content = content.withLock { $0.take() }
    _ = consume content
  }
}
