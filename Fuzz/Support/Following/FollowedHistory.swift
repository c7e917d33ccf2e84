package import CairnStore

/// The numbered operations of a writer that other processes follow. A seed and the number determine
/// an operation, and each value identifies the operation that wrote it. So any value shows a reader
/// how far the writer had got.
package struct FollowedHistory: Sendable {
  package static let keyCount = 24

  package enum Operation: Sendable {
    case put(key: Int)
    case remove(key: Int)
    /// At least one of them is a put.
    case batch([(key: Int, isRemoval: Bool)])
    /// A longer lifetime, which no read shows.
    case setLifetime(key: Int)
    case removeAll
    /// Removes one key after another, in an order that the store decides.
    case trim(toCount: Int)
    case compact, checkpoint, sync, reopen
  }

  package let seed: UInt64

  package init(seed: UInt64) { self.seed = seed }

  package static func key(_ index: Int) -> String { "key \(index)" }

  private func random(_ number: Int, _ purpose: UInt64) -> FuzzRandom {
    FuzzRandom(seed: seed ^ UInt64(number) << 20 ^ purpose)
  }

  package func operation(_ number: Int) -> Operation {
    var random = random(number, 0)
    let key = random.below(Self.keyCount)
    switch random.below(1000) {
    case 0..<600: return .put(key: key)
    case 600..<750: return .remove(key: key)
    case 750..<930:
      var rest = Array(0..<Self.keyCount)
      let count = 2 + random.below(random.once(in: 8) ? 16 : 5)
      return .batch(
        (0..<count).map { index in
          let key = rest.remove(at: random.below(rest.count))
          return (key, index > 0 && random.once(in: 3))
        })
    case 930..<950: return .setLifetime(key: key)
    case 950..<955: return .removeAll
    case 955..<965: return .trim(toCount: random.below(Self.keyCount))
    case 965..<983: return .compact
    case 983..<990: return .checkpoint
    case 990..<996: return .sync
    default: return .reopen
    }
  }

  /// The value that an operation gives a key.
  package func value(_ number: Int, forKey key: Int, inBatch: Bool) -> [UInt8] {
    var random = random(number, UInt64(key + 1) << 56)
    // Sometimes too large for a segment of 64 KiB.
    let isLarge = !inBatch && random.once(in: 150)
    let rest = random.bytes(count: isLarge ? 70_000 : random.below(600))
    var value = (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    value += [UInt8(key), inBatch ? 1 : 0]
    return value + rest
  }

  /// The operation that wrote a value.
  package func number(of value: [UInt8], forKey key: Int) throws -> Int {
    if value.count >= 10 {
      let number = (0..<8).reduce(0) { $0 | Int(value[$1]) << (8 * $1) }
      if number > 0, self.value(number, forKey: key, inBatch: value[9] == 1) == value {
        return number
      }
    }
    throw FuzzFailure("\(Self.key(key)) has an unwritten value of \(value.count) bytes")
  }

  /// Performs an operation.
  package func perform(_ number: Int, in store: Store) throws {
    switch operation(number) {
    case .put(let key):
      try store.setValue(
        value(number, forKey: key, inBatch: false), forKey: Self.key(key),
        lifetime: number % 3 == 0 ? .seconds(3600) : .standard)
    case .remove(let key): try store.removeValue(forKey: Self.key(key))
    case .batch(let changes):
      try store.write { batch in
        for change in changes {
          if change.isRemoval {
            try batch.removeValue(forKey: Self.key(change.key))
          } else {
            try batch.setValue(
              value(number, forKey: change.key, inBatch: true), forKey: Self.key(change.key))
          }
        }
      }
    case .setLifetime(let key): try store.setLifetime(.seconds(7200), forKey: Self.key(key))
    case .removeAll: try store.removeAll()
    case .trim(let count): try store.trim(.toCount(count))
    case .compact: try store.compact()
    case .checkpoint: try store.checkpoint()
    case .sync: try store.sync()
    case .reopen: break
    }
  }

  /// The outcome of an operation whose process was killed before the operation returned, as far as
  /// it is known.
  ///
  /// - Parameter held: for each key, the operation that wrote its current value, or 0 for none.
  package func outcome(_ number: Int, held: [Int]) -> Outcome {
    switch operation(number) {
    case .put(let key): Outcome(isApplied: held[key] == number)
    case .remove(let key): Outcome(isApplied: held[key] == 0)
    case .batch(let changes): Outcome(isApplied: held[changes[0].key] == number)
    case .removeAll: Outcome(isApplied: held.allSatisfy { $0 == 0 })
    case .trim:
      Outcome(isApplied: true, removed: held.indices.filter { held[$0] == 0 })
    default: Outcome(isApplied: true)
    }
  }

  /// The result of an operation.
  package struct Outcome: Sendable, Equatable {
    package var isApplied: Bool
    /// The keys that a trim may have removed: those without a value afterwards.
    package var removed: [Int] = []

    package init(isApplied: Bool, removed: [Int] = []) {
      self.isApplied = isApplied
      self.removed = removed
    }

    /// The state as one word, which is never 0.
    package var word: UInt64 {
      removed.reduce(isApplied ? 1 : 2) { $0 | 1 << UInt64(8 + $1) }
    }

    package init(word: UInt64) {
      isApplied = word & 3 == 1
      removed = (0..<FollowedHistory.keyCount).filter { word >> UInt64(8 + $0) & 1 == 1 }
    }
  }
}
