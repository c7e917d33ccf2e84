public import CairnStore

/// A loaded value, with the options for keeping it.
///
///     let page = try await cache.value(forKey: url) {
///       let (bytes, age) = try await fetch(url)
///       return Loaded(bytes, lifetime: .after(age))
///     }
public struct Loaded<Value: Sendable>: Sendable {
  /// The value.
  public var value: Value
  /// The options for keeping the value, if it was just loaded.
  package var options: EntryOptions
  /// The time since the value was written, or since this process found it still valid. Zero for a
  /// value that was just loaded.
  public package(set) var age: Duration = .zero
  /// Whether the value's lifetime has ended, but a ``LoadPolicy`` allowed the call to return the
  /// value.
  public package(set) var isStale = false

  /// Makes the result of a loader.
  ///
  /// - Parameters:
  ///   - value: the value, which all waiters receive.
  ///   - lifetime: how long the value lives from the end of the load. `nil` means that of the
  ///     options.
  ///   - options: the options for keeping the value. The metadata may be the ETag that came with it.
  public init(_ value: Value, lifetime: Lifetime? = nil, options: EntryOptions = .standard) {
    self.value = value
    self.options = options.with(lifetime)
  }
}

extension Loaded: Equatable where Value: Equatable {}
extension Loaded: Hashable where Value: Hashable {}
