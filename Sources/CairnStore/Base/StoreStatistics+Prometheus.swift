extension StoreStatistics {
  private typealias Number = (name: String, help: String, value: Double)

  private var counters: [Number] {
    [
      ("compactedBytes", "Bytes that compaction has written.", Double(compactedByteCount)),
      ("delayedWrites", "Writes that waited for compaction or room.", Double(delayedWriteCount)),
      ("writeDelaySeconds", "How long delayed writes waited.", writeDelay.inSeconds),
      ("scrubReadBytes", "Bytes that scrubs have read.", Double(scrub.readByteCount)),
    ]
  }

  private var gauges: [Number] {
    let counts: [(String, String, Int)] = [
      ("keys", "Keys in the index.", count),
      ("segments", "Segments of the log.", segmentCount),
      ("tombstones", "Tombstones in the log.", tombstoneCount),
      ("liveBytes", "Live bytes of the log.", liveByteCount),
      ("deadBytes", "Dead bytes of the log.", deadByteCount),
      ("allocatedBytes", "Bytes that the segments take on disk.", allocatedByteCount),
      ("pinnedBytes", "Bytes reclaimed when the last read of them ends.", pinnedByteCount),
      ("reclaimableBytes", "Dead bytes that a compaction could reclaim.", reclaimableByteCount),
      ("excessBytes", "Dead bytes above the bound or kept for damage.", excessByteCount),
      ("indexBytes", "Bytes of memory that the index takes.", indexByteCount),
      ("lastVersion", "The version of the newest write.", Int(clamping: lastVersion)),
      ("recoveryDamagedValues", "Values that the last open found damaged.", recovery.damage.count),
      (
        "recoveryQuarantinedFiles", "Files that the last open set aside.",
        recovery.quarantinedFiles.count
      ),
      ("scrubFoundPlaces", "Damaged places found by the current cycle.", scrub.damageCount),
      ("scrubDamagedPlaces", "Damaged places found by the last cycle.", scrub.lastDamageCount),
    ]
    let end = scrub.lastCompleted.map { Double($0.millisecondsSinceEpoch) / 1000 }
    return counts.map { ($0.0, $0.1, Double($0.2)) }
      + [
        (
          "clockOffsetSeconds", "How far the clock is ahead of the elapsed time.",
          clockOffset.inSeconds
        )
      ]
      + (end.map { [("scrubLastCompletedTimestampSeconds", "When the last cycle finished.", $0)] }
        ?? [])
  }

  /// All numbers with their names, for a metrics library.
  public var metrics: [Metric] {
    counters.map { Metric($0.name, $0.value) }
      + gauges.map { Metric($0.name, $0.value, isCounter: false) }
  }

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
    text.add(
      "store_info", "The versions of Cairn and of the format, and what the last open did.",
      [
        (
          [
            "version": libraryVersion, "format_version": formatVersion,
            "index": recovery.source.rawValue, "clean": "\(recovery.wasClean)",
          ], 1
        )
      ])
    for (numbers, isCounter) in [(gauges, false), (counters, true)] {
      for (name, help, value) in numbers {
        text.add(
          "store_\(PrometheusText.words(name))", help, isCounter: isCounter, [([:], value)])
      }
    }
    return text.text
  }
}
