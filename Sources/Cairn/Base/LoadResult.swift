public import CairnStore

/// What a loader sees of the value to replace.
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
  /// How long ago it was written, or found not modified by this process.
  public let age: Duration
  /// Whether its lifetime has ended.
  public let isStale: Bool
  /// The bytes stored with it, such as an ETag; empty if there are none, and from a cache in
  /// memory.
  public let metadata: [UInt8]

  /// The answer that the value is still valid. Its life is extended without rewriting it, and it
  /// keeps its version and metadata.
  ///
  /// - Parameter lifetime: how long it lives after the end of the load. A life is never shortened.
  public func notModified(lifetime: Lifetime = .standard) -> LoadResult<Value> {
    LoadResult(kind: .notModified(self, lifetime))
  }
}

/// A loader's answer: a value, that the old value is still valid, or that there is none.
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
  ///   - options: how to keep it; see ``Loaded``.
  public static func loaded(_ value: Value, options: EntryOptions = .standard) -> LoadResult {
    LoadResult(kind: .loaded(Loaded(value, options: options)))
  }

  /// Reports that there is no value. Any value of the key is removed.
  ///
  /// - Parameter duration: how long no other load is tried. Only this process knows the answer, for
  ///   up to 65,536 keys; a write or a removal of the key ends it.
  public static func absent(for duration: Duration) -> LoadResult {
    LoadResult(kind: .absent(duration))
  }
}
