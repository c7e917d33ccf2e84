package import CairnStore

/// Makes operations, each with a different value.
package struct OperationGenerator {
  /// Few, so that they are overwritten often. One is long, and one is a prefix of others.
  package static let keys: [[UInt8]] =
    (0..<9).map { Array("key \($0)".utf8) }
    + [Array("key".utf8), [UInt8](repeating: 0x6B, count: 300), [0]]

  private var valueCount = 0
  private var backupCount = 0
  /// Whether entries may have lifetimes.
  package var mayExpire = true
  /// Whether values may be larger than a segment.
  package var mayBeLarge = true
  /// Whether many entries have a lifetime, and many operations extend one, so that segments contain
  /// little else.
  package var setsLifetimesOften = false

  package init() {}

  private mutating func value(byteCount: Int) -> [UInt8] {
    valueCount += 1
    var random = FuzzRandom(seed: UInt64(valueCount))
    return random.bytes(count: byteCount)
  }

  package mutating func entry(
    _ choices: inout some ChoiceSource, now: Timestamp, mayBeLarge: Bool = true
  ) -> ModelEntry {
    let byteCount =
      switch choices.below(40) {
      case 0: 0
      case 1..<20: 8 + choices.below(120)
      case 20..<30: 8 + choices.below(1000)
      case 30..<39: 2000 + choices.below(18_000)
      default: mayBeLarge && self.mayBeLarge ? 66_000 + choices.below(20_000) : 500
      }
    var entry = ModelEntry(value: value(byteCount: byteCount))
    if choices.once(in: 8) {
      entry.metadata = Array("metadata \(valueCount)".utf8)
      let cost = choices.below(1000)
      entry.cost = cost
      if cost % 2 == 0 { entry.idleLimit = .seconds(1_000_000 + cost) }
    }
    if mayExpire, setsLifetimesOften ? !choices.once(in: 5) : choices.once(in: 5) {
      let most = setsLifetimesOften ? 50_000 : 5000
      entry.expires = now.advanced(by: .milliseconds(1 + choices.below(most)))
    }
    return entry
  }

  private func durability(_ choices: inout some ChoiceSource) -> Durability {
    switch choices.below(8) {
    case 0..<2: .durable
    case 2: .interval(.milliseconds([20, 50, 200][choices.below(3)]))
    default: .process
    }
  }

  package mutating func next(_ choices: inout some ChoiceSource, now: Timestamp) -> Operation {
    let key = choices.element(of: Self.keys)
    if setsLifetimesOften, !choices.once(in: 3) {
      switch choices.below(16) {
      case 0: return .compact
      case 1: return .checkpoint
      default:
        return .setLifetime(
          key: key, .milliseconds(1 + choices.below(200_000)), durability(&choices))
      }
    }
    switch choices.below(100) {
    case 0..<45: return .put(key: key, entry(&choices, now: now), durability(&choices))
    case 45..<48:
      return .setLifetime(
        key: key, .milliseconds(1 + choices.below(8000)), durability(&choices))
    case 48..<53: return .remove(key: key, durability(&choices))
    case 53..<55:
      return .compareAndRemove(key: key, isRight: !choices.once(in: 3), durability(&choices))
    case 55..<57:
      let keys = (0..<(1 + choices.below(5))).map { _ in choices.element(of: Self.keys) }
      return .removeMany(keys: keys, durability(&choices))
    case 57: return update(of: key, &choices)
    case 58..<72:
      var changes: [Operation.Change] = []
      for _ in 0..<(1 + choices.below(6)) {
        let key = choices.element(of: Self.keys)
        let isRemoval = choices.once(in: 3)
        changes.append(
          (key, isRemoval ? nil : entry(&choices, now: now, mayBeLarge: false)))
      }
      return .batch(changes, durability(&choices))
    case 72..<75: return update(of: key, &choices)
    case 75..<78:
      return .compareAndSet(
        key: key, entry(&choices, now: now), isRight: !choices.once(in: 3), durability(&choices))
    case 78..<80: return .removeAll
    case 80..<84: return .sync
    case 84..<88:
      let length = choices.below(choices.once(in: 4) ? 4000 : 200)
      // Sometimes long enough for a close to record accesses.
      return .wait(length % 50 == 7 ? .seconds(3700) : .milliseconds(length))
    case 88..<90: return .runJobs
    case 90: return .checkpoint
    case 91..<93:
      switch choices.below(6) {
      case 0..<2: return .removeExpired(durability(&choices))
      case 2: return .trimBytes(to: 50 << choices.below(11), durability(&choices))
      case 3..<5:
        // A workload covers little time.
        return .trimOlder(
          than: .milliseconds(1 << choices.below(12)), by: choices.once(in: 2) ? .write : .access,
          durability(&choices))
      default: return .trim(toCount: choices.below(10), durability(&choices))
      }
    case 93..<95: return .get(key: key)
    case 95..<97: return .compact
    case 97:
      if choices.once(in: 2) { return .snapshot }
      backupCount += 1
      return .backup(to: "/backup-\(backupCount)")
    default: return .reopen
    }
  }
  private mutating func update(
    of key: [UInt8], _ choices: inout some ChoiceSource
  ) -> Operation {
    let value = choices.once(in: 4) ? nil : value(byteCount: choices.below(2000))
    return .update(key: key, value: value, durability(&choices))
  }
}
