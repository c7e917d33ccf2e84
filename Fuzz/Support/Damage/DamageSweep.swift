import CairnStore

/// Damage to small stores, as numbered cases.
package struct DamageSweep {
  /// The cases of one kind of damage to one store.
  private struct Part {
    var store: DamagedStore
    var count: Int
    var damage: @Sendable (Int) -> Damage
  }

  private struct Damage {
    var files: [String: [UInt8]]
    /// The oldest state that may be found.
    var oldest: Int
    /// The one file with damage.
    var file: String
    var name: String
    /// What may happen to the store.
    var outcome = DamageOutcome.any
    /// Whether the damage touches at most one record.
    var isOneBit = false
  }

  private var parts: [Part] = []
  private var checks: [DamageCheck] = []

  package var caseCount: Int { parts.reduce(0) { $0 + $1.count } }

  private mutating func add(_ part: Part) {
    parts.append(part)
    checks.append(DamageCheck(part.store))
  }

  /// One line for each store: its kind and size.
  package var description: String {
    parts.map {
      "\($0.store.kind.rawValue): \($0.store.files.count) files, \($0.store.byteCount) bytes, "
        + "\($0.store.history.count) states, \($0.count) cases"
    }.joined(separator: "\n")
  }

  package mutating func run(_ number: Int) throws -> Tally {
    var rest = number
    for index in parts.indices {
      if rest >= parts[index].count {
        rest -= parts[index].count
        continue
      }
      let damage = parts[index].damage(rest)
      // A copy, so that it counts this case only.
      var check = checks[index]
      // If a read fails, the store is always verified, otherwise only sometimes.
      do {
        try check.check(
          damage.files, oldest: damage.oldest, damagedFile: damage.file,
          outcome: damage.outcome, isOneBit: damage.isOneBit, alwaysVerifies: number % 7 == 0)
      } catch {
        throw FuzzFailure("\(parts[index].store.kind.rawValue) store, \(damage.name): \(error)")
      }
      return check.tally
    }
    preconditionFailure("there is no case \(number)")
  }

  // MARK: Bits

  /// Every bit of every file of stores of 64 KiB and more, which together have every type of file
  /// and record: one that was closed, one whose process was killed, one whose machine lost power.
  /// This includes the allocated space beyond the log. An empty file, such as LOCK, gets a byte
  /// with one bit.
  package static func allBits() throws -> DamageSweep {
    var sweep = DamageSweep()
    for store in try DamagedStore.all() {
      let map = DamageMap(store)
      var places: [(name: String, first: Int)] = []
      var count = 0
      for name in store.names {
        places.append((name, count))
        count += 8 * max(1, store.files[name]?.count ?? 0)
      }
      // After a kill, only the last write may be missing.
      let oldest =
        switch store.kind {
        case .closed: store.history.count - 1
        case .killed: store.history.count - 2
        case .powerCut: store.durable
        }
      sweep.add(
        Part(store: store, count: count) { [places] number in
          guard let place = places.last(where: { $0.first <= number }) else {
            preconditionFailure("no such bit")
          }
          let bit = number - place.first
          var files = store.files
          if files[place.name]?.isEmpty == true { files[place.name] = [0] }
          files[place.name]?[bit / 8] ^= 1 << UInt8(bit % 8)
          return Damage(
            files: files, oldest: oldest, file: place.name,
            name: "bit \(bit % 8) of byte \(bit / 8) of \(place.name)",
            outcome: map.outcome(of: place.name, at: bit / 8), isOneBit: true)
        })
    }
    return sweep
  }

  // MARK: The tail

  private static let tailByteCount = 64 << 10

  /// The last 64 KiB of a log: cut off, zeroed or filled with garbage from each byte on.
  package static func tails() throws -> DamageSweep {
    var sweep = DamageSweep()
    for kind in [DamagedStore.Kind.killed, .powerCut] {
      let store = try DamagedStore(
        kind, logByteCount: 70 << 10, segmentByteLimit: 256 << 10, seals: true, isSynced: false)
      let map = DamageMap(store)
      // The active segment. The next one may already be prepared.
      let open = store.manifest?.openSegments.map { FileName.segment($0.id) } ?? []
      guard let name = open.last(where: { !map.ends(in: $0).isEmpty }),
        let bytes = store.files[name]
      else { preconditionFailure("a store without a log") }
      let ends = map.ends(in: name)
      guard let end = ends.last?.end, end - tailByteCount > SegmentHeader.byteCount else {
        preconditionFailure("a log that is too short")
      }
      let garbage = FuzzRandom(seed: 9)
      sweep.add(
        Part(store: store, count: 3 * tailByteCount) { number in
          let offset = end - tailByteCount + number / 3
          var damaged = bytes
          let what: String
          switch number % 3 {
          case 0:
            damaged.removeLast(bytes.count - offset)
            what = "cut off"
          case 1:
            for place in offset..<end { damaged[place] = 0 }
            what = "zeroed"
          default:
            var random = garbage
            damaged.replaceSubrange(offset..<end, with: random.bytes(count: end - offset))
            what = "garbage"
          }
          // Everything before the damage must be found.
          let version = ends.last { $0.end <= offset }?.version ?? 0
          let oldest = store.lastVersions.lastIndex { $0 <= version } ?? 0
          var files = store.files
          files[name] = damaged
          return Damage(
            files: files, oldest: oldest, file: name, name: "\(what) from byte \(offset) on")
        })
    }
    return sweep
  }
}
