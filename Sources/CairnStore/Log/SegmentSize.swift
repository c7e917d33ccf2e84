/// The size at which a segment is full.
///
/// On a full disk, a compaction copies a whole segment into the reserve, which every store keeps. So
/// a segment is a small part of the log: a 64th, but at least 1 MiB, or more on a slow disk, or a
/// 16th of the free space of a small disk.
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
  ///   - syncTime: how long a sync takes that writes little. Each segment costs a sync, so on a
  ///     slow disk a segment has at least 1 MiB for each `slowSync`, up to 16 MiB.
  ///   - limit: the configured limit.
  static func byteCount(
    forLogOf logByteCount: Int, free: Int, syncTime: Duration, slowSync: Duration, limit: Int
  ) -> Int {
    var share = 1
    while share <= logByteCount / 128 { share *= 2 }
    var least = 1 << 20
    while least < aside, syncTime > slowSync * (least >> 20) { least *= 2 }
    return min(limit, max(smallest, share, min(least, free / 16)))
  }
}
