package import CairnStore

/// What a call with a loader gives: the value, and how old it is.
public struct Loaded<Value: Sendable>: Sendable {
  /// The value.
  public var value: Value
  /// The options for keeping the value, if it was just loaded.
  @usableFromInline var options: EntryOptions
  /// The time since the value was written, or since this process found it still valid. Zero for a
  /// value that was just loaded.
  public package(set) var age: Duration = .zero
  /// Whether the value's lifetime has ended, but a ``LoadPolicy`` allowed the call to return the
  /// value.
  public package(set) var isStale = false

  @usableFromInline
  package init(_ value: Value, lifetime: Lifetime? = nil, options: EntryOptions = .standard) {
    self.value = value
    self.options = options.with(lifetime)
  }
}

extension Loaded: Equatable where Value: Equatable {}
extension Loaded: Hashable where Value: Hashable {}
