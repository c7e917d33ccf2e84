/// A value that left the cache, on its way out of the lock.
@usableFromInline
struct RemovedEntry<Key: Sendable, Value: Sendable>: Sendable {
  @usableFromInline var key: Key
  @usableFromInline var value: Value
  @usableFromInline var cause: CacheRemovalCause

  @inlinable
  init(key: Key, value: Value, cause: CacheRemovalCause) {
    self.key = key
    self.value = value
    self.cause = cause
  }
}

/// What one hold of the lock removed. Destroyed, and told of, when the lock is given up.
@usableFromInline
struct RemovedEntries<Key: Sendable, Value: Sendable>: Sendable {
  /// Apart, since most calls remove one or none, and an array takes an allocation.
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
