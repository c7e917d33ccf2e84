/// Which reads check a value against its checksum. All reads check the record's header and key.
///
/// RocksDB and ZFS offer the same choice.
public enum Verification: Sendable, Hashable {
  /// Every read, so no read returns a damaged value. The default of a store.
  case everyRead
  /// For large values, only the first read since the segment was mapped or the record was moved.
  /// Large values are those of 4 KiB or more in segments that this process does not write to. For
  /// all other values, every read. The default of a cache.
  ///
  /// If a value is damaged after its first read, a scrub, a verification or the next session finds
  /// the damage.
  case firstRead
  /// No read. Reads may return damaged values.
  case never
}
