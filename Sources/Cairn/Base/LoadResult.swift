public import CairnStore

/// What a loader is shown of the value that it is to replace.
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
  /// The bytes that were stored beside it, such as an ETag; empty where there are none, and from a cache in memory.
  public let metadata: [UInt8]

  /// The answer that the value is still right. It lives on without being written again, and keeps its version and its
  /// metadata.
  ///
  /// - Parameter lifetime: how long it lives from the end of the load on. A life is never shortened.
  public func notModified(lifetime: Lifetime = .standard) -> LoadResult<Value> {
    LoadResult(kind: .notModified(self, lifetime))
  }
}

/// What a loader answers: a value, that the old value is still right, or that there is none.
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
  ///   - options: how it is kept, as with ``Loaded``.
  public static func loaded(_ value: Value, options: EntryOptions = .standard) -> LoadResult {
    LoadResult(kind: .loaded(Loaded(value, options: options)))
  }

  /// That there is none. The value that the key has is removed.
  ///
  /// - Parameter duration: for how long nobody is to ask again. The answer is known to the process alone, of up to 65,536
  ///   keys; a write or a removal of the key ends it.
  public static func absent(for duration: Duration) -> LoadResult {
    LoadResult(kind: .absent(duration))
  }
}
