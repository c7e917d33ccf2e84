/// Extending the lifetimes of entries without rewriting their values.
extension Engine {
  /// Extends the lifetime of a key's value to `lifetime` from now, unless it already ends later, or
  /// renews the value.
  ///
  /// - Parameter isOneOfMany: whether one sync follows many extensions.
  /// - Returns: whether the key has a value or, for a renewal, the renewal's version, still wanted.
  func extendLifetime(
    forKey key: RawSpan, to lifetime: Duration, durability: Durability?, renewal: Renewal? = nil,
    isOneOfMany: Bool = false, _ pending: inout PendingWrite
  ) throws(StoreError) -> Bool {
    let durability = session.durability(durability)
    let extended = try extend(
      key, to: lifetime, forSync: durability == .durable && !isOneOfMany, renewal: renewal)
    if extended.isThere {
      // If no record was needed, this makes the write that set the current end durable.
      pending.add(
        PendingWrite(sequence: extended.sequence ?? log.lastSequence, durability: durability))
    }
    return extended.isThere
  }

  /// Removes the value of a key if it has expired, and returns whether it had expired.
  func removeExpiredValue(
    forKey key: RawSpan, durability: Durability?, _ pending: inout PendingWrite
  ) throws(StoreError) -> Bool {
    let durability = session.durability(durability)
    let sequence = try remove(
      key, expecting: .anything, forSync: durability == .durable, expired: true)
    guard let sequence else { return false }
    pending.add(PendingWrite(sequence: sequence, durability: durability))
    return true
  }

  /// Renews the entry that has this version, even an expired one, if it is still wanted.
  struct Renewal: Sendable {
    let version: SequenceNumber
    /// Called under the log's lock, so it must only read.
    let isWanted: @Sendable () -> Bool
  }

  /// Appends an extension if one is needed, and returns its sequence number.
  func extend(
    _ key: RawSpan, to lifetime: Duration, forSync: Bool, renewal: Renewal?
  ) throws(StoreError) -> (isThere: Bool, sequence: SequenceNumber?) {
    try session.checkWritable()
    defer { Reclamation.reclaimIfDue() }
    let now = lookup.clock.now()
    let template = try session.limits.extensionHeader(key: key, expires: now.advanced(by: lifetime))
    let hash = lookup.hash.hash(key)
    /// The entry to extend, if its lifetime is shorter, and whether the key has a value.
    func look() throws(StoreError) -> (shorter: Existing?, isThere: Bool) {
      guard let existing = try lookup.locate(hash, key: key, now: now, for: .absent) else {
        return (nil, false)
      }
      if let renewal {
        guard existing.sequence == renewal.version, renewal.isWanted() else { return (nil, false) }
      } else if existing.hasExpired {
        return (nil, false)
      }
      guard let expires = existing.expires, expires < template.expires else { return (nil, true) }
      return (existing, true)
    }
    // An entry that lives long enough needs no record.
    let first = try look()
    if first.shorter == nil { return (first.isThere, nil) }
    try evictor.checkLimits()
    lookup.noteTimeIfNeeded(now)
    var isSlowed = false
    let result = try writer.withRoom(
      byteCount: template.byteCount + RecordHeader.syncMarkByteCount, isRemoval: false
    ) {
      (appender: inout Appender) throws(StoreError) -> (isThere: Bool, sequence: SequenceNumber?) in
      if appender.unpublished != nil { try writer.publishPending(hash, &appender) }
      let (shorter, isThere) = try look()
      guard let shorter else { return (isThere, nil) }
      var header = template
      header.target = shorter.sequence
      let (location, sequence) = try appender.append(
        &header, key: key, metadata: RawSpan(), value: RawSpan(), written: now, forSync: forSync)
      _ = lookup.index.extend(
        hash, at: shorter.location,
        LifetimeExtension(
          expires: header.expires, location: location,
          byteCount: header.byteCount))
      // Any previous extension is now dead. It has the same size.
      isSlowed = appender.allowance.spend(header.byteCount)
      return (true, sequence)
    }
    evictor.keepLimits()
    if isSlowed { writer.pressure.waitForCompaction(afterMakingDead: template.byteCount) }
    return result
  }
}
