public import CairnStore

extension TieredCache {
  /// Changes the value of a key in one call, so that no change is lost that others make at the same time.
  ///
  ///     try visits.update(forKey: page) { ($0 ?? 0) + 1 }
  ///
  /// The old value is read from disk. The new one is written only if nobody has written the key since; else all
  /// of it begins again. So `change` may be called more than once, and must have no side effects. It is called
  /// under no lock, and may use the cache.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - cost: as with `setValue`; `nil`: the one that the entry was given.
  ///   - lifetime: how long the entry lives from now on, in both tiers; `nil`: until the end that it has. One
  ///     that is not there gets what the configuration of the store says.
  ///   - idleLimit: as with `setValue`; `nil`: the one that the entry has, else as the configuration says.
  ///   - metadata: bytes kept beside the value, on disk; `nil`: those that the entry has.
  ///   - durability: `nil`: the configuration's.
  ///   - change: makes the new value of the one that is there; of `nil` where there is none. `nil` removes it.
  /// - Returns: the new value and its version; `nil` where there is none now. Where there was none either,
  ///   nothing was written, nor made durable.
  /// - Throws: as `DiskCache.update`.
  /// - Complexity: as `DiskCache.update`.
  @discardableResult
  public func update(
    forKey key: Key, cost: Int? = nil, lifetime: Lifetime? = nil, idleLimit: Duration? = nil,
    metadata: [UInt8]? = nil, durability: Durability? = nil,
    _ change: (_ value: Value?) throws -> Value?
  ) throws -> (value: Value, version: UInt64)? {
    let tierKey = try tierKey(key)
    while true {
      let present = try disk.present(key)
      if let present {
        noteSeen(present.info.version, of: tierKey)
      } else {
        noteShownAbsent(tierKey)
      }
      guard let value = try change(present?.value) else {
        guard let version = present?.info.version else { return nil }
        if try compareAndRemove(forKey: key, expecting: version, durability: durability) {
          return nil
        }
        continue
      }
      let attributes = EntryAttributes(
        cost: cost, lifetime: lifetime, idleLimit: idleLimit,
        metadata: disk.encoded(metadata ?? present?.metadata ?? []), keeping: present?.info)
      let result = try compareAndWrite(
        value, forKey: tierKey, expecting: present?.info.version, attributes,
        durability: durability)
      if case .stored(let version) = result { return (value, version) }
    }
  }
}
