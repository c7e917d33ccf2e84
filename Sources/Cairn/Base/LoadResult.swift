public import CairnStore

/// The old value of a key, as passed to the loader.
///
///     let page = try await pages.loaded(forKey: url) { prior in
///       let answer = try await fetch(url, ifNoneMatch: prior?.metadata)
///       if answer.isNotModified, let prior { return prior.notModified(lifetime: .minutes(5)) }
///       return .loaded(answer.page, options: EntryOptions(lifetime: .minutes(5), metadata: answer.etag))
///     }
public struct PriorValue<Value: Sendable>: Sendable {
  /// The value.
  public let value: Value
  /// The value's version.
  public let version: UInt64
  /// The time since the value was written, or since this process found it unmodified.
  public let age: Duration
  /// Whether the value's lifetime has ended.
  public let isStale: Bool
  /// The caller's bytes stored with the value, such as an ETag. Always empty from a cache in
  /// memory.
  public let metadata: [UInt8]

  /// Reports that the value is still valid. The cache extends its lifetime and keeps its metadata.
  ///
  /// - Parameter lifetime: how long the value lives, counted from the end of the load. A lifetime
  ///   is never shortened. `.standard` means the configured one; without one, the value then lives
  ///   forever.
  public func notModified(lifetime: Lifetime) -> LoadResult<Value> {
    LoadResult(kind: .notModified(self, lifetime))
  }
}

/// What a loader returns: a new value, or that the old value is still valid, or that no value
/// exists.
public struct LoadResult<Value: Sendable>: Sendable {
  enum Kind: Sendable {
    case loaded(Loaded<Value>)
    case notModified(PriorValue<Value>, Lifetime)
    case absent(Duration, tags: [String])
  }

  let kind: Kind

  /// Returns a new value.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - lifetime: how long the value lives from the end of the load. `nil` means that of the
  ///     options.
  ///   - options: the options for keeping the value. See ``Loaded``.
  public static func loaded(
    _ value: Value, lifetime: Lifetime? = nil, options: EntryOptions = .standard
  ) -> LoadResult {
    LoadResult(kind: .loaded(Loaded(value, lifetime: lifetime, options: options)))
  }

  /// Reports that no value exists. The cache removes the old value, if there is one.
  ///
  /// - Parameters:
  ///   - duration: how long the cache remembers this, and does not load again. Only this process
  ///     remembers, for up to 65,536 keys. A write or a removal of the key ends this.
  ///   - tags: the tags whose removal from a cache on disk ends this too.
  public static func absent(for duration: Duration, tags: [String] = []) -> LoadResult {
    LoadResult(kind: .absent(duration, tags: tags))
  }
}
