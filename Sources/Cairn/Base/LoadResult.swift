public import CairnStore

/// The value to replace, as passed to a loader.
///
///     let page = try await pages.loaded(forKey: url) { prior in
///       let answer = try await fetch(url, ifNoneMatch: prior?.metadata)
///       if answer.isNotModified, let prior { return prior.notModified(lifetime: .minutes(5)) }
///       return .loaded(answer.page, options: EntryOptions(lifetime: .minutes(5), metadata: answer.etag))
///     }
public struct PriorValue<Value: Sendable>: Sendable {
  /// The value.
  public let value: Value
  /// Its version.
  public let version: UInt64
  /// How long ago it was written, or this process found it unmodified.
  public let age: Duration
  /// Whether its lifetime has ended.
  public let isStale: Bool
  /// The bytes stored with it, such as an ETag. Empty if none were given, and from a cache in
  /// memory.
  public let metadata: [UInt8]

  /// The answer that the value is still valid. Its lifetime is extended without rewriting it, and
  /// it keeps its version and metadata.
  ///
  /// - Parameter lifetime: how long it lives after the end of the load. A lifetime is never
  ///   shortened.
  public func notModified(lifetime: Lifetime = .standard) -> LoadResult<Value> {
    LoadResult(kind: .notModified(self, lifetime))
  }
}

/// A loader's answer: a new value, that the old value is still valid, or that no value exists.
public struct LoadResult<Value: Sendable>: Sendable {
  enum Kind: Sendable {
    case loaded(Loaded<Value>)
    case notModified(PriorValue<Value>, Lifetime)
    case absent(Duration)
  }

  let kind: Kind

  /// A value.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - options: how to keep it. See ``Loaded``.
  public static func loaded(_ value: Value, options: EntryOptions = .standard) -> LoadResult {
    LoadResult(kind: .loaded(Loaded(value, options: options)))
  }

  /// Reports that no value exists. Any value of the key is removed.
  ///
  /// - Parameter duration: how long no other load is attempted. Only this process remembers the
  ///   answer, for up to 65,536 keys, until the key is written or removed.
  public static func absent(for duration: Duration) -> LoadResult {
    LoadResult(kind: .absent(duration))
  }
}
