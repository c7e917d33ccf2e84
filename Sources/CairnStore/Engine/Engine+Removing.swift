/// Removing many keys by name.
extension Engine {
  @usableFromInline
  package func makeKeyRemoval() throws(StoreError) -> KeyRemoval {
    try session.checkWritable()
    return KeyRemoval()
  }

  /// Removes a key, as a separate write. `finish` waits for all these writes.
  @usableFromInline
  package func remove(_ key: RawSpan, in removal: inout KeyRemoval) throws(StoreError) {
    if let sequence = try remove(key, expecting: .anything, forSync: false) {
      removal.noteRemoved(sequence: sequence)
    } else {
      removal.noteAbsent()
    }
  }

  @usableFromInline
  package func finish(
    _ removal: KeyRemoval, durability: Durability?
  ) throws(StoreError) -> Int {
    // Another write may have removed an absent key after the last of these removals, so if a key
    // was absent, commit all records.
    let last = removal.foundAbsent ? 0 : removal.lastSequence
    // The store may have been opened with a lower limit than before.
    if removal.count > 0 { evictor.keepLimits() }
    try trimmer.remover.commit(removalThrough: last, durability)
    return removal.count
  }
}
