/// Extended lifetimes. Each is stored in its entry's shard and moves with the entry.
extension HashIndex {
  /// Extends the lifetime of an entry beyond its record's. Returns `false` if the entry is gone.
  package func extend(_ hash: UInt64, at location: Location, _ new: LifetimeExtension) -> Bool {
    change(Self.shard(of: hash)) { shard in
      guard let slot = shard.slot(of: Self.stored(hash), location: location) else { return false }
      if let known = shard.setExtension(new, at: slot) { didForget(known) }
      return true
    }
  }

  /// Like `find` with a location. Also sets `end` to the entry's extended end of lifetime
  /// (`Int64.min`: not extended).
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

  /// The location of the put that the record at a location extends, or `nil` if that extension is
  /// not in force.
  ///
  /// - Parameter body: called with the put's location under the shard's lock.
  package func location(
    _ hash: UInt64, extendedBy location: Location, _ body: (Location) -> Void = { _ in }
  ) -> Location? {
    shards[Self.shard(of: hash)].withLock { shard in
      guard let slot = shard.slot(of: Self.stored(hash), extendedBy: location) else { return nil }
      body(shard[slot].location)
      return shard[slot].location
    }
  }

  /// Sets the new location of the record of an extension. Returns `false` if the extension is no
  /// longer in force.
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
