internal import Synchronization

extension Engine {
  /// The store's usage. Makes no system call and waits for none.
  package func usage() throws(StoreError) -> StoreUsage {
    try session.checkUsable()
    var usage = StoreUsage()
    log.withLock { appender in
      for segment in appender.segments {
        usage.deadByteCount += segment.usage.deadByteCount
        usage.allocatedByteCount += segment.allocatedByteCount
      }
      usage.allocatedByteCount += appender.prepared?.allocatedByteCount ?? 0
    }
    usage.indexedKeyCount = lookup.index.count
    usage.liveByteCount = lookup.table.total.liveByteCount
    usage.pinnedByteCount = lookup.table.total.pinnedByteCount
    return usage
  }

  /// The store's statistics. After the first write of a session, does not wait for manifest syncs,
  /// which hold the catalog's lock.
  package func statistics() throws(StoreError) -> StoreStatistics {
    try session.checkUsable()
    let (segments, listed, prepared, lastSequence) = log.withLock { appender in
      (
        appender.segments, appender.hasSession ? Set(appender.sealed.map(\.id)) : nil,
        appender.prepared, appender.nextSequence - 1
      )
    }
    // Before the first write, only the manifest tells which segments a close left open.
    let sealed = listed ?? catalog.sealedIDs
    var allocated = try prepared?.file.openIfNamed()?.status().allocatedByteCount ?? 0
    var shares: [SegmentStatistics] = []
    for segment in segments {
      let usage = segment.usage
      // A segment retired since then has released its space.
      let onDisk = try segment.file.openIfNamed()?.status().allocatedByteCount ?? 0
      allocated += onDisk
      shares.append(
        SegmentStatistics(
          id: segment.id.rawValue, liveByteCount: usage.liveByteCount,
          deadByteCount: usage.deadByteCount, tombstoneCount: usage.tombstoneCount,
          byteCount: usage.end, allocatedByteCount: onDisk, isSealed: sealed.contains(segment.id)))
    }
    var statistics = StoreStatistics(
      count: lookup.index.count,
      liveByteCount: shares.reduce(0) { $0 + $1.liveByteCount },
      deadByteCount: shares.reduce(0) { $0 + $1.deadByteCount }, allocatedByteCount: allocated,
      segments: shares, tombstoneCount: shares.reduce(0) { $0 + $1.tombstoneCount },
      pinnedByteCount: lookup.table.total.pinnedByteCount,
      indexByteCount: lookup.index.byteCount, lastVersion: lastSequence,
      formatVersion: FormatVersion.text, recovery: checkpointer.recovery)
    statistics.clockOffset = session.clock.offset
    statistics.scrub = scrubber.statistics
    // A session that only reads makes no pass, so look at the segments too.
    let dead = shares.filter(\.isSealed).reduce(0) { $0 + $1.deadByteCount }
    let allowed = compactor.allowedGarbage(live: statistics.liveByteCount)
    let excess = dead - compactor.highestGarbage(allowed: allowed)
    (statistics.reclaimableByteCount, statistics.excessByteCount) = log.withLock {
      let allowance = $0.allowance
      return (
        allowance.reclaimableByteCount, max(excess, allowance.excess + allowance.heldByteCount, 0)
      )
    }
    statistics.compactedByteCount = compactor.writtenByteCount.load(ordering: .relaxed)
    statistics.delayedWriteCount = writer.pressure.writeCount.load(ordering: .relaxed)
    statistics.writeDelay = .milliseconds(writer.pressure.delay.load(ordering: .relaxed))
    return statistics
  }
}
