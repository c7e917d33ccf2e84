internal import CairnStore

/// Keys, values and options in the store's form.
extension DiskCache {
  /// Options, in the store's form.
  ///
  /// - Throws: `invalidTag`.
  @inline(__always)
  func stored(_ options: EntryOptions) throws(StoreError) -> EntryOptions {
    if options.isMetadataEncoded { return options }
    if let tags = options.tags { return encode(try TagLimits.bytes(of: tags), in: options) }
    return options.encoded(metadata: encoded(options.metadataBytes))
  }

  /// Metadata as stored on disk, with the tag.
  func encoded(_ metadata: [UInt8]) -> [UInt8] {
    metadata.isEmpty ? bareMetadata : CacheMetadata(tag: valueCoder.tag, rest: metadata).encoded
  }

  /// The bytes that identify a key.
  package func bytes(of key: Key) throws(StoreError) -> [UInt8] {
    try keyCoder.encode(key) { (key) throws(StoreError) in [UInt8](copying: key) }
  }

  @inlinable
  func encode(
    _ value: Value, forKey key: Key,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws(StoreError) -> Void
  ) throws(StoreError) {
    try keyCoder.withBytes(key) { (key) throws(StoreError) in
      try valueCoder.withBytes(value) { (value) throws(StoreError) in try body(key, value) }
    }
  }
}
