public import CairnStore

/// The errors of a cache on disk, and of loads. Each says what failed and why. No error contains
/// keys or values. A minor version may add cases, so give every `switch` a `default`.
public enum CacheError: Error, Sendable, Hashable {
  /// The cache's store failed.
  case store(StoreError)

  // Coding.

  /// The key coder could not encode a key.
  case unencodableKey(reason: String)
  /// The value coder could not encode a value. Nothing was written. The reason names the wrong part
  /// of the value if the coder reports it, as Foundation's coders do. If a cache throws the error,
  /// `cache` is its name.
  case unencodableValue(cache: String? = nil, reason: String)
  /// The key coder could not decode the bytes of a key in the store. No call throws this error:
  /// iteration skips such keys, and the log reports them.
  case undecodableKey(reason: String)
  /// The value coder could not decode the bytes of a value in the store, although they are intact.
  /// The value was kept. `version` is the entry's version, for a compare-and-remove. The reason
  /// names the wrong part of the value if the coder reports it, as Foundation's coders do, but
  /// shows dictionary keys as `[…]`.
  case undecodableValue(cache: String, version: UInt64, reason: String)
  /// A coder with another tag wrote the value. The value was kept. `version` is the entry's
  /// version.
  case changedType(version: UInt64, found: UInt32, expected: UInt32)

  // Tags.

  /// The key has a prefix that is reserved for the cache's own keys. Nothing was written.
  case reservedKey
  /// A tag is empty or too long. Nothing was written.
  case invalidTag(byteCount: Int, limit: Int)
  /// An entry has too many tags. Nothing was written.
  case tooManyTags(count: Int, limit: Int)
  /// Too many removed tags have entries that are still being removed in the background. Nothing was
  /// removed. Call `DiskCache.maintain()` to finish the removal, or try later.
  case tooManyRemovedTags(limit: Int)

  // Opening.

  /// A name or namespace is not a valid directory name, or a URL is not a file URL.
  case invalidName(reason: String)
  /// The user has no directory for caches.
  case noCacheDirectory(reason: String)
  /// The path is inside the directory of a store, which may belong to another cache. For example,
  /// this happens if the cache's namespace is the name of another cache.
  case insideStore(path: String, store: String)

  // Any use.

  /// The task was cancelled before the work began.
  case cancelled
  /// The shared cache with this name is already open with keys or values of another type.
  case otherType(found: String, expected: String)
  /// A load would wait for itself: its loader requested its own key, or a key whose load waits for
  /// this one. The loader's call throws this error.
  case circularLoad
  /// A load took longer than its policy's `timeLimit`. The load was cancelled. A late result is not
  /// kept.
  case loadTimedOut(limit: Duration)
}

extension CacheError: CustomStringConvertible {
  /// A one-line description that is safe to log: it contains no bytes of keys or values.
  public var description: String {
    switch self {
    case .store(.unsupportedOption(name: "entry in memory only")):
      "a memory-only entry needs a memory tier, and a plain set or load"
    case .store(let error): error.description
    case .unencodableKey(let reason): "a key could not be encoded: \(reason)"
    case .unencodableValue(let cache, let reason):
      "a value\(cache.map { " for the cache \(shown($0))" } ?? "") could not be encoded: \(reason)"
    case .undecodableKey(let reason): "a key could not be decoded: \(reason)"
    case .undecodableValue(let cache, let version, let reason):
      "the value of version \(version) in the cache \(shown(cache)) could not be decoded: \(reason)"
    case .changedType(let version, let found, let expected):
      "the value of version \(version) was written with the tag \(found), not \(expected)"
    case .reservedKey: "the key has a prefix that is reserved for the cache"
    case .invalidTag(let byteCount, let limit):
      "a tag has \(byteCount) bytes; it may have 1 to \(limit)"
    case .tooManyTags(let count, let limit): "the entry has \(count) tags; it may have \(limit)"
    case .tooManyRemovedTags(let limit):
      "\(limit) removed tags still have entries to remove"
    case .invalidName(let reason): "not a valid cache name: \(reason)"
    case .noCacheDirectory(let reason): "no directory for caches: \(reason)"
    case .insideStore(let path, let store):
      "\(path): a cache cannot be inside the directory of a store: \(store)"
    case .cancelled: "the task was cancelled before the work began"
    case .otherType(let found, let expected):
      "the open cache of that name is a \(found), not a \(expected)"
    case .circularLoad: "a load waits for itself"
    case .loadTimedOut(let limit):
      "a load exceeded its time limit of \(max(0, limit.milliseconds)) ms"
    }
  }
}

extension CacheError {
  /// Returns the error, with the cache's name added to an `unencodableValue`.
  @usableFromInline
  func named(_ cache: String) -> CacheError {
    guard case .unencodableValue(nil, let reason) = self else { return self }
    return .unencodableValue(cache: cache, reason: reason)
  }

  /// Converts a value coder's error.
  @usableFromInline
  static func undecodable(_ error: any Error, version: UInt64, in cache: String) -> CacheError {
    .undecodableValue(cache: cache, version: version, reason: codingReason(error))
  }
}

/// Calls the store, and converts its errors.
@inline(__always)
func callingStore<Result: ~Copyable>(
  _ body: () throws(StoreError) -> Result
) throws(CacheError) -> Result {
  do throws(StoreError) { return try body() } catch { throw .store(error) }
}
