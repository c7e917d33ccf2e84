extension StoreStatistics {
  /// The statistics as text for Prometheus to scrape, in exposition format 0.0.4
  /// (`text/plain; version=0.0.4`). A name consists of the prefix, `store` and the metric: for
  /// example, `cairn_store_live_bytes`.
  ///
  /// The names differ from those of a cache's statistics, so one response can contain both a cache
  /// and its store.
  ///
  /// - Parameter prefix: begins each name, followed by `_`. Several stores in one response need
  ///   different prefixes. Characters that a name may not contain become `_`.
  public func prometheus(prefix: String) -> String {
    var text = PrometheusText(prefix: prefix)
    addInfo(to: &text)
    addSizes(to: &text)
    text.counter(
      "store_compacted_bytes", "Bytes that compaction has written.", [([:], compactedByteCount)])
    text.counter(
      "store_delayed_writes", "Writes that waited for compaction or for room.",
      [([:], delayedWriteCount)])
    text.counter(
      "store_write_delay_seconds", "How long delayed writes waited.", [([:], writeDelay.inSeconds)])
    addScrub(to: &text)
    return text.text
  }

  private func addInfo(to text: inout PrometheusText) {
    text.gauge(
      "store_info", "The versions of Cairn and of the format, and what the last open did.",
      [
        (
          [
            "version": libraryVersion, "format_version": formatVersion,
            "index": recovery.source.rawValue, "clean": "\(recovery.wasClean)",
          ], 1
        )
      ])
    text.gauge(
      "store_recovery_damaged_values", "Values that the last open found damaged.",
      [([:], recovery.damagedValues.count)])
    text.gauge(
      "store_recovery_quarantined_files", "Unknown files that the last open set aside.",
      [([:], recovery.quarantinedFiles.count)])
    text.gauge("store_last_version", "The version of the newest write.", [([:], lastVersion)])
    text.gauge(
      "store_clock_offset_seconds", "How far the clock is ahead of the elapsed time.",
      [([:], clockOffset.inSeconds)])
  }

  private func addSizes(to text: inout PrometheusText) {
    let gauges: [(String, String, Int)] = [
      ("keys", "Keys in the index.", indexedKeyCount),
      ("segments", "Segments of the log.", segmentCount),
      ("tombstones", "Tombstones in the log.", tombstoneCount),
      ("live_bytes", "Live bytes of the log.", liveByteCount),
      ("dead_bytes", "Dead bytes of the log.", deadByteCount),
      ("allocated_bytes", "Bytes that the segments take on disk.", allocatedByteCount),
      ("pinned_bytes", "Bytes reclaimed when the last read of them ends.", pinnedByteCount),
      ("reclaimable_bytes", "Dead bytes that a compaction could reclaim.", reclaimableByteCount),
      ("excess_bytes", "Dead bytes above the bound or kept for damage.", excessByteCount),
      ("index_bytes", "Bytes of memory that the index takes.", indexByteCount),
    ]
    for (name, help, value) in gauges { text.gauge("store_\(name)", help, [([:], value)]) }
  }

  private func addScrub(to text: inout PrometheusText) {
    text.counter(
      "store_scrub_read_bytes", "Bytes that scrubs have read.", [([:], scrub.readByteCount)])
    text.gauge(
      "store_scrub_damaged_places", "Damaged places found by the last cycle and the current one.",
      [(["cycle": "last"], scrub.lastDamageCount), (["cycle": "current"], scrub.damageCount)])
    if let end = scrub.lastCompleted {
      text.gauge(
        "store_scrub_last_completed_timestamp_seconds", "When the last cycle finished.",
        [([:], Double(end.millisecondsSinceEpoch) / 1000)])
    }
  }
}
