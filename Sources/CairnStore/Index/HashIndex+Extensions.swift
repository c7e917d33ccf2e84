/// Lifetimes that were extended. What is known of them lies in the shard of the entry and goes with it.
extension HashIndex {
  /// The lifetime of an entry's record ends later than the record says; `false` where the entry is
  /// gone.
  package func extend(_ hash: UInt64, at location: Location, _ new: LifetimeExtension) -> Bool {
    change(Self.shard(of: hash)) { shard in
      guard let slot = shard.slot(of: Self.stored(hash), location: location) else { return false }
      if let known = shard.setExtension(new, at: slot) { didForget(known) }
      return true
    }
  }

  /// As `find` with a location, and tells to when the entry's lifetime was extended; `Int64.min`: it was
  /// not.
  package func find(
    _ hash: UInt64, at location: Location, extendedTo end: inout Int64,
    _ body: (IndexEntry) -> Void
  ) -> Bool {
    shards[Self.shard(of: hash)].withLock { shard in
      guard let slot = shard.slot(of: Self.stored(hash), location: location) else { return false }
      end = shard.extensionOfEntry(at: slot)?.expires ?? .min
      body(shard[slot])
      return true
    }
  }

  /// The extension of an entry.
  package func lifetimeExtension(
    _ hash: UInt64, at location: Location
  ) -> LifetimeExtension? {
    shards[Self.shard(of: hash)].withLock { shard in
      shard.slot(of: Self.stored(hash), location: location).flatMap {
        shard.extensionOfEntry(at: $0)
      }
    }
  }

  /// Where the put lies that the record at a location extends; `nil` where that is not in force.
  ///
  /// - Parameter body: called with it under the shard's lock.
  package func location(
    _ hash: UInt64, extendedBy location: Location, _ body: (Location) -> Void = { _ in }
  ) -> Location? {
    shards[Self.shard(of: hash)].withLock { shard in
      guard let slot = shard.slot(of: Self.stored(hash), extendedBy: location) else { return nil }
      body(shard[slot].location)
      return shard[slot].location
    }
  }

  /// The record of an extension that is in force now lies somewhere else; `false` where it is not in
  /// force any more.
  package func relocateExtension(
    _ hash: UInt64, from old: Location, to new: Location, byteCount: Int
  ) -> Bool {
    change(Self.shard(of: hash)) { shard in
      guard let slot = shard.slot(of: Self.stored(hash), extendedBy: old),
        let known = shard.extensionOfEntry(at: slot)
      else { return false }
      shard.setExtension(
        LifetimeExtension(expires: known.expires, location: new, byteCount: byteCount), at: slot)
      return true
    }
  }
}
