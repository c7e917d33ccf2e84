import CairnStore

extension SimulatedDisk {
  /// The path and the bytes of the checkpoint that the store's manifest lists.
  package var listedCheckpoint: (path: String, bytes: [UInt8], headerByteCount: Int)? {
    let directory = SimulatedProcess.path
    guard let manifest = contents(of: "\(directory)/MANIFEST"),
      let id = (try? Manifest(decoding: manifest.rawSpan))?.checkpointID,
      id != 0
    else { return nil }
    let path = "\(directory)/\(FileName.checkpoint(id))"
    guard let bytes = contents(of: path), bytes.count > Checkpoint.fixedByteCount else {
      return nil
    }
    let header = Int(bytes.rawSpan.load(UInt32.self, at: 12))
    return (path, bytes, min(header, bytes.count))
  }
}

extension RecoveryCheck {
  /// A checkpoint is never the only source of a fact: if it is missing, damaged or replaced by
  /// another one, the store has the same contents.
  mutating func checkWithoutCheckpoint(
    _ disk: SimulatedDisk, _ legal: [ModelState], _ choices: inout some ChoiceSource
  ) throws {
    guard let (path, bytes, headerByteCount) = disk.listedCheckpoint else { return }
    let others = otherCheckpoints.filter { $0 != bytes }
    var changed: [UInt8]? = bytes
    let what: String
    func flip(_ range: Range<Int>) {
      changed?[range.lowerBound + choices.below(range.count)] ^= 1 << UInt8(choices.below(8))
    }
    switch choices.below(5) {
    case 0 where !others.isEmpty:
      what = "another checkpoint"
      changed = choices.element(of: others)
    case 1:
      what = "a flipped bit in the checkpoint's header"
      flip(0..<headerByteCount)
    case 2 where bytes.count > headerByteCount, 3 where bytes.count > headerByteCount:
      what = "a flipped bit in the checkpoint's entries"
      flip(headerByteCount..<bytes.count)
    default:
      what = "no checkpoint"
      changed = nil
    }
    disk.setContents(changed, of: path)
    let process = SimulatedProcess.start(on: disk, seed: 1)
    do {
      let store = try process.open(configuration)
      let state = try Self.match(
        store, legal, now: now, strayFiles: strayFiles, "with \(what)",
        mayCountMore: mayCountMore)
      try checkReads(store, state)
    } catch let error as StoreError {
      throw FuzzFailure("(with \(what)) the store does not open or read: \(error)")
    }
    process.kill()
    noteChangedCheckpoint()
  }

  /// A limit on the number of entries holds after a write, and the least recently used entries are
  /// evicted.
  func checkLimit(_ limit: Int, of store: Store) throws {
    let key = Array("beyond the limit".utf8)
    let before = try store.keysByRecency()
    let indexedCount = try store.statistics().count
    try store.setValue([1], forKey: key, durability: .process)
    let count = try store.statistics().count
    let after = try store.keysByRecency()
    guard count == min(limit, indexedCount + 1), after.last == key,
      before.suffix(after.count - 1).elementsEqual(after.dropLast())
    else {
      throw FuzzFailure(
        "with a limit of \(limit) there are \(count) of \(indexedCount + 1) entries")
    }
  }
}
