internal import CairnStore

/// Keys, values and options in the store's form.
extension DiskCache {
  /// Options, in the store's form.
  ///
  /// - Throws: `invalidTag`, `tooManyTags`.
  @inline(__always)
  func stored(_ options: EntryOptions) throws(CacheError) -> EntryOptions {
    if options.isMetadataEncoded { return options }
    if let tags = options.tags { return encode(try TagLimits.bytes(of: tags), in: options) }
    return options.encoded(metadata: encoded(options.metadataBytes))
  }

  /// Metadata as stored on disk, with the tag.
  func encoded(_ metadata: [UInt8]) -> [UInt8] {
    metadata.isEmpty ? bareMetadata : CacheMetadata(tag: valueCoder.tag, rest: metadata).encoded
  }

  /// The bytes that identify a key.
  package func bytes(of key: Key) throws(CacheError) -> [UInt8] {
    try keyCoder.encode(key) { (key) throws(CacheError) in [UInt8](copying: key) }
  }

  @inlinable
  func encode(
    _ value: Value, forKey key: Key,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws(CacheError) -> Void
  ) throws(CacheError) {
    try keyCoder.withBytes(key) { (key) throws(CacheError) in
      try encode(value) { (value) throws(CacheError) in try body(key, value) }
    }
  }

  /// Calls `body` with the bytes of a value. Adds the cache's name to a coder's error.
  @inlinable
  func encode(
    _ value: Value, _ body: (RawSpan) throws(CacheError) -> Void
  ) throws(CacheError) {
    do throws(CacheError) { try valueCoder.withBytes(value, body) } catch {
      throw error.named(name)
    }
  }
}
