/// A value whose lifetime is as demanded.
package struct Renewed {
  package var version: SequenceNumber
  /// Whether it was written again.
  package var isWritten = false
  /// The value that it replaced, if removals are observed.
  package var replaced: PendingWrite.Replacement?
}

/// Other lifetimes. A value whose lifetime changes is written again.
extension Engine {
  /// The value to write again, and how long it then lives.
  struct Renewal: Sendable {
    var lifetime: Lifetime
    /// Whether a lifetime that ends later, or never, stays.
    var neverShortens = false
    /// The version that the key must have, even if it has expired. With `nil`, the key must have an
    /// unexpired value.
    var version: SequenceNumber?
    /// Whether the entry with this metadata and version is still wanted. Called under the log's
    /// lock, so it must only read.
    var isWanted: @Sendable (_ metadata: [UInt8], SequenceNumber) -> Bool = { _, _ in true }
  }

  /// Makes the lifetime of a key's value end when the renewal says. Writes the value again, with its
  /// metadata, cost and idle limit, unless nothing would change.
  ///
  /// - Parameter removals: receives what the limits evict, even if the call throws.
  /// - Returns: the value that now lives that long, or `nil` if the key has no such value.
  func setLifetime(
    forKey key: RawSpan, _ renewal: Renewal, durability: Durability?, _ pending: inout PendingWrite,
    removals: inout [RemovalEvent]
  ) throws(StoreError) -> Renewed? {
    try session.checkWritable()
    let durability = session.durability(durability)
    while true {
      let now = lookup.clock.now()
      let found = try lookup.findEvenExpired(key, part: .head) {
        (
          info: $0.info, metadata: $0.record.metadata.copied(),
          hasExpired: lookup.hasExpired($0.header, tick: $0.tick, now: now)
        )
      }
      guard let (info, metadata, hasExpired) = found else { return nil }
      let version = info.version
      if let wanted = renewal.version {
        if version != wanted { return nil }
      } else if hasExpired {
        return nil
      }
      guard renewal.isWanted(metadata, version) else { return nil }
      let end = renewal.lifetime.or(session.limits.lifetime).end(writtenAt: now)
      let (old, new) = (info.expires ?? .distantFuture, end ?? .distantFuture)
      if renewal.neverShortens ? old >= new : info.expires == end {
        // Makes the write that set the current end durable.
        pending.add(PendingWrite(sequence: log.lastSequence, durability: durability))
        return Renewed(version: version)
      }
      // A copy, because on a full disk the write may need the room of the record's segment.
      let value = try lookup.findEvenExpired(key, part: .all) { (found) throws(StoreError) in
        found.record.sequence == version ? try found.record.checkedValue() : nil
      }
      guard let value, let value else { continue }
      let options = EntryOptions.lifetime(end.map { .until($0) } ?? .unlimited).keeping(
        info, metadata: metadata)
      let isWanted = { @Sendable in renewal.isWanted(metadata, version) }
      let (result, entered) = try put(
        value.rawSpan, forKey: key, options: options, durability: durability,
        expecting: renewal.version == nil
          ? .versionAndWanted(version, isWanted) : .recordAndWanted(version, isWanted),
        &removals)
      if case .stored(let version) = result {
        // Here, because a call can set the lifetimes of many large values.
        var write = entered
        if write.slowedByteCount > 0 {
          writer.pressure.waitForCompaction(afterMakingDead: write.slowedByteCount)
          write.slowedByteCount = 0
        }
        pending.add(write)
        return Renewed(version: version, isWritten: true, replaced: write.replaced)
      }
    }
  }

  /// Like the form above, and tells the observer.
  ///
  /// - Returns: whether the key has such a value.
  func setLifetime(
    _ lifetime: Lifetime, forKey key: RawSpan, durability: Durability?,
    _ pending: inout PendingWrite
  ) throws(StoreError) -> Bool {
    try tellingRemovals { (removals) throws(StoreError) in
      let renewed = try setLifetime(
        forKey: key, Renewal(lifetime: lifetime), durability: durability, &pending,
        removals: &removals)
      renewed?.replaced?.add(to: &removals, ofKey: key)
      return (renewed != nil, pending)
    }.0
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
}
