/// Large values: other writers continue while a value is written.
extension Writer {
  /// The result of writing a large record.
  struct AsidePut {
    var result: CompareAndSetResult
    var replaced: PendingWrite.Replacement?
  }

  /// Writes one large record outside the log, head last.
  @inline(never)
  func putAside(
    _ value: RawSpan, forKey key: RawSpan, metadata: RawSpan, header template: RecordHeader,
    hash: UInt64, written now: Timestamp, expecting expectation: Expectation, forSync: Bool
  ) throws(StoreError) -> AsidePut {
    try writingAside(byteCount: template.byteCount, isRemoval: false) {
      () throws(StoreError) -> AsidePut in
      try appendAside(
        byteCount: template.byteCount, isRemoval: false, forSync: forSync, isBatch: false
      ) { (segment, _) throws(StoreError) in
        let start = SegmentHeader.byteCount + template.headByteCount
        try segment.write(value, at: start, byCalls: true)
        let padding = [UInt8](
          repeating: 0, count: template.byteCount - template.headByteCount - value.byteCount)
        try segment.write(padding.rawSpan, at: start + value.byteCount, byCalls: true)
      } unless: { (appender) throws(StoreError) in
        if appender.unpublished != nil { try publishPending(hash, &appender) }
        try lookup.index.makeRoom(hash)
        return try lookup.locate(hash, key: key, now: now, for: expectation).mismatch(expectation)
          .map {
            AsidePut(result: $0)
          }
      } _: { (appender, _) throws(StoreError) in
        var header = template
        let existing = try lookup.locate(hash, key: key, now: now)
        let (location, version) = try appender.appendHead(
          &header, key: key, metadata: metadata, written: now)
        publish(hash, at: location, deadline: header.deadline { now }, replacing: existing)
        appender.allowance.spendAside(existing?.byteCount ?? 0)
        return AsidePut(
          result: .stored(version: version),
          replaced: replacement(existing))
      }
    }
  }
}
