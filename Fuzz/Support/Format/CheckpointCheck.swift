import CairnRepair
import CairnStore

/// Opens and uses a store with another checkpoint in place of its own.
///
/// A checkpoint that is damaged, or that does not match the manifest, costs only time. A forgery by
/// someone who knows the format can hide keys, or make opens fail. But no call traps, and no key
/// returns a value that it never had. If a check of the store finds nothing wrong, the forgery
/// hides no keys either.
package enum CheckpointCheck {
  @discardableResult
  package static func check(_ input: [UInt8]) throws -> Bool {
    let input = FormatInput(input)
    let isForged = input.options.contains(.repair)
    let base = try CheckpointBase.of(input.options)
    var bytes = input.bytes
    if isForged {
      ChecksumRepair.checkpoint(&bytes, shape: input.options.contains(.third))
    }
    let disk = try base.disk(with: bytes, isBound: isForged)
    let isDamaged = !isForged && bytes != base.checkpoint
    let errors = try errors(on: disk)
    if bytes == base.checkpoint { try require(errors.isEmpty, "a sound store: \(errors)") }
    let process = SimulatedProcess.start(on: disk, seed: 1)
    defer { process.kill() }
    let clock = ManualClock()
    let isUsed: Bool
    do {
      let store = try process.open(.simulated(clock))
      isUsed = try store.statistics().recovery.source == .checkpoint
      try checkReads(
        store, base, isForged: isForged && !errors.isEmpty, hasForgedCounts: isForged)
      try use(store, isForged: isForged)
      process.queue.runAll()
      try store.close()
    } catch let error as StoreError {
      try judge(error, isForged: isForged)
      return false
    }
    // The forged data may happen to be right.
    if isDamaged, isUsed { try require(isHarmless(bytes, base), "a damaged checkpoint is used") }
    process.kill()
    let again = SimulatedProcess.start(on: disk, seed: 2)
    defer { again.kill() }
    do {
      _ = try Store.verify(path: SimulatedProcess.path, environment: again.environment)
      // The limit is so low that the first write evicts the entries that the checkpoint lists as
      // oldest.
      var configuration = StoreConfiguration.simulated(clock)
      configuration.countLimit = 2
      let store = try again.open(configuration)
      try store.setValue([1], forKey: CheckpointBase.key(50), durability: .process)
      try store.setValue([1], forKey: CheckpointBase.key(51), durability: .process)
      try store.forEachKey { _ in .next }
      if !isForged {
        let differences = try store.auditUsage()
        try require(differences.isEmpty, "counts are wrong: \(differences)")
      }
      try store.close()
    } catch let error as StoreError { try judge(error, isForged: isForged) }
    return isUsed
  }

  /// A damaged shard does not prevent the use of its header.
  private static func isHarmless(_ bytes: [UInt8], _ base: CheckpointBase) -> Bool {
    let size = Int(base.checkpoint.number(at: 12, count: 4))
    return bytes.count >= size && bytes[..<size] == base.checkpoint[..<size]
  }

  private static func judge(_ error: StoreError, isForged: Bool) throws {
    guard isForged, case .corrupt = error else {
      throw FuzzFailure("an unusable checkpoint causes an error: \(error)")
    }
  }

  private static func errors(on disk: SimulatedDisk) throws -> [Corruption] {
    let process = SimulatedProcess.start(on: disk, seed: 3)
    defer { process.kill() }
    return try Store.verify(path: SimulatedProcess.path, environment: process.environment).errors
  }

  private static func checkReads(
    _ store: Store, _ base: CheckpointBase, isForged: Bool, hasForgedCounts: Bool
  ) throws {
    for number in 0..<CheckpointBase.keyCount {
      let key = CheckpointBase.key(number)
      do {
        let value = try store.value(forKey: key)
        if !isForged {
          try require(value == base.contents[key], "key \(number) has another value")
        } else if let value {
          try require(
            base.history[key]?.contains(value) == true, "key \(number) never had its value")
        }
      } catch let error as StoreError { try judge(error, isForged: isForged) }
    }
    let count = try store.count()
    if !isForged {
      try require(count == base.contents.count, "\(count) keys")
      if hasForgedCounts { return }
      let differences = try store.auditUsage()
      try require(differences.isEmpty, "counts are wrong: \(differences)")
    }
  }

  /// Makes every call that relies on a checkpoint.
  private static func use(_ store: Store, isForged: Bool) throws {
    let key = CheckpointBase.key
    let steps: [(Store) throws -> Void] = [
      { _ = try $0.setValue([1], forKey: key(3), durability: .process) },
      { try $0.removeValue(forKey: key(30), durability: .process) },
      { try $0.setLifetime(.seconds(9000), forKey: key(15), durability: .process) },
      { try $0.forEachKey { _ in .next } },
      { store in
        let snapshot = try store.snapshot()
        _ = try snapshot.value(forKey: key(33))
      },
      { _ = try $0.auditUsage() },
      { try $0.trim(.toCount(20), durability: .process) },
      { try $0.trim(.expired, durability: .process) },
      { try $0.compact() },
      { try $0.checkpoint() },
      { try $0.trim(.toBytes(5000), durability: .process) },
      { try $0.compact() },
    ]
    for step in steps {
      do { try step(store) } catch let error as StoreError {
        try judge(error, isForged: isForged)
      }
    }
  }
}
