public import CairnStore

/// Everything that can go wrong with a cache on disk. Every failure names what and why; none carries bytes
/// of keys or values. A minor version may add cases, so a `switch` over it keeps a `default`.
public enum CacheError: Error, Sendable, Hashable {
  /// The store under the cache failed.
  case store(StoreError)

  // Coding.

  /// The key coder made no bytes of a key.
  case unencodableKey(reason: String)
  /// The value coder made no bytes of a value. Nothing was written.
  case unencodableValue(reason: String)
  /// The key coder made no key of the bytes in the store. Only the log has it: iterating leaves such a key
  /// out, and no call throws it.
  case undecodableKey(reason: String)
  /// The value coder made no value of the bytes in the store, which are those that were written. The
  /// value was kept.
  /// The version is that of the entry, for a compare-and-remove.
  case undecodableValue(version: UInt64, reason: String)
  /// The value was written by a coder with another tag. It was kept.
  /// The version is that of the entry.
  case changedType(version: UInt64, found: UInt32, expected: UInt32)

  // Opening.

  /// A name or namespace cannot be a directory's.
  case invalidName(reason: String)
  /// There is no directory for caches.
  case noCacheDirectory(reason: String)
  /// A cache at the path would lie in the directory of a store, which may be another cache: its
  /// namespace is the name of that cache, say.
  case insideStore(path: String, store: String)

  // Any use.

  /// The task was cancelled before the work began.
  case cancelled
  /// The live cache of a name has keys or values of another type.
  case otherType(found: String, expected: String)
  /// A load waits for itself: its loader asked for its own key, or for one whose load waits for it. Thrown where
  /// the loader or one of its child tasks asks.
  case circularLoad
}

extension CacheError: CustomStringConvertible {
  /// The failure in one line, without bytes of keys or values, so that it may be logged.
  public var description: String {
    switch self {
    case .store(let error): error.description
    case .unencodableKey(let reason): "a key could not be encoded: \(reason)"
    case .unencodableValue(let reason): "a value could not be encoded: \(reason)"
    case .undecodableKey(let reason): "a key could not be decoded: \(reason)"
    case .undecodableValue(let version, let reason):
      "the value of version \(version) could not be decoded: \(reason)"
    case .changedType(let version, let found, let expected):
      "the value of version \(version) was written with the tag \(found), not \(expected)"
    case .invalidName(let reason): "not a name for a cache: \(reason)"
    case .noCacheDirectory(let reason): "there is no directory for caches: \(reason)"
    case .insideStore(let path, let store):
      "\(path): a cache cannot lie in the directory of a store, as \(store) is"
    case .cancelled: "the task was cancelled before the work began"
    case .otherType(let found, let expected):
      "the live cache of that name is a \(found), not a \(expected)"
    case .circularLoad: "a load waits for itself"
    }
  }
}

extension CacheError {
  /// What a value coder's error becomes.
  @usableFromInline
  static func undecodable(_ error: any Error, version: UInt64) -> CacheError {
    .undecodableValue(version: version, reason: codingReason(error))
  }
}

/// What a coder of one's own throws to say why, in words that may be logged.
///
/// Of any other error only the type and the case are kept, since the rest may tell of the value.
public struct CodingFailure: Error, Sendable, Hashable {
  /// Why the coder failed. It may be logged, so it should say nothing of the value.
  public var reason: String

  /// Makes a failure.
  ///
  /// - Parameter reason: why, in words that may be logged.
  public init(_ reason: String) { self.reason = reason }
}

/// What may be said of an error that a coder threw.
func codingReason(_ error: any Error) -> String {
  switch error {
  case let failure as CodingFailure: return failure.reason
  // Neither says anything of keys or values.
  case let error as CacheError: return error.description
  case let error as StoreError: return error.description
  default: break
  }
  // The path of these names keys of dictionaries, and what they say in words may quote the value.
  switch error {
  case DecodingError.typeMismatch(let type, _): return "no \(type) where one was expected"
  case DecodingError.valueNotFound(let type, _): return "nothing where a \(type) was expected"
  case DecodingError.keyNotFound: return "a part is missing"
  case DecodingError.dataCorrupted: return "the bytes are not of the coder's format"
  case EncodingError.invalidValue(_, let context):
    let depth = context.codingPath.count
    return "the coder's format has no form for "
      + (depth == 0 ? "it" : "a part of it, \(depth) levels deep") + ", as JSON has none for NaN"
  default: break
  }
  return "the coder threw \(name(of: error))"
}

/// The type of an error, and its case where it has cases; nothing of what it holds.
private func name(of error: any Error) -> String {
  let type = String(describing: type(of: error))
  // One that says by itself how it is to be shown may show what it holds.
  if error is any CustomReflectable { return type }
  let mirror = Mirror(reflecting: error)
  guard mirror.displayStyle == .enum else { return type }
  if let name = mirror.children.first?.label { return "\(type).\(name)" }
  // A case that holds nothing is shown by its name, unless it has words of its own.
  if error is any CustomStringConvertible || error is any CustomDebugStringConvertible
    || error is any TextOutputStreamable
  {
    return type
  }
  return "\(type).\(error)"
}

/// Calls the store; what it throws becomes the cache's error.
func callingStore<Result: ~Copyable>(
  _ body: () throws(StoreError) -> Result
) throws(CacheError) -> Result {
  do throws(StoreError) { return try body() } catch { throw .store(error) }
}
