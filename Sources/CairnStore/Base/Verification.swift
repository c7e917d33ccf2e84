/// When reads check a value against its checksum. They always check the record's header and key.
///
/// RocksDB and ZFS offer the same choice.
public enum Verification: Sendable, Hashable {
  /// At each read, so no read returns a damaged value. The default of a store.
  case everyRead
  /// At the first read since its segment was mapped or its record was moved, for values of 4 KiB and
  /// more in segments that this process does not write to. Other values are checked at each read.
  /// The default of a cache.
  ///
  /// A scrub, a verification or the next session finds damage that appears after the first read, in
  /// memory or on disk.
  case firstRead
  /// Never. Reads may return damaged values.
  case never
}
