/// The size at which a segment is full.
///
/// On a full disk, a compaction copies a whole segment into the reserve, which every store keeps. So
/// a segment is a small part of the log: a 64th, but at least 1 MiB, or a 16th of the free space of
/// a small disk.
enum SegmentSize {
  /// Has room for the removal of the longest key, and for a group of other removals with it
  /// (`VictimGroup.byteLimit`).
  static let smallest = 72 << 10
  /// A record or batch of this size has a segment of its own, however large segments are.
  static let aside = 16 << 20

  /// - Parameters:
  ///   - logByteCount: the size of the log. Only its binary order of magnitude counts, so that the
  ///     reserve seldom changes.
  ///   - free: the free space of the disk.
  ///   - limit: the configured limit.
  static func byteCount(forLogOf logByteCount: Int, free: Int, limit: Int) -> Int {
    var share = 1
    while share <= logByteCount / 128 { share *= 2 }
    return min(limit, max(smallest, share, min(1 << 20, free / 16)))
  }
}
