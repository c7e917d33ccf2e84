import CairnStore

/// Random damage of any shape, by seed: flipped bits, garbage, zeroed and exchanged pages, missing
/// files, and files copied over each other or replaced by another store's.
package struct RandomDamage {
  private let stores: [DamagedStore]
  private let checks: [DamageCheck]
  private let strangers: [DamagedStore]

  package init() throws {
    stores = try DamagedStore.all()
    strangers = try DamagedStore.all(seed: 2)
    checks = stores.map { DamageCheck($0) }
  }

  package func run(seed: UInt64) throws -> Tally {
    var random = FuzzRandom(seed: seed)
    let index = random.below(stores.count)
    let store = stores[index]
    var files = store.files
    var names: [String] = []
    for _ in 0..<(1 + random.below(3)) { names.append(damage(&files, index, &random)) }
    // If all files come from another store, the result is that store.
    if files[FileName.manifest] == strangers[index].files[FileName.manifest] {
      for name in files.keys where name != FileName.manifest {
        if files[name] == strangers[index].files[name] { files[name] = store.files[name] }
      }
    }
    let oldest = oldest(files, store)
    var check = checks[index]
    do { try check.check(files, oldest: oldest) } catch {
      throw FuzzFailure("\(store.kind.rawValue) store, \(names.joined(separator: ", ")): \(error)")
    }
    return check.tally
  }

  /// The oldest state that may be found. Beyond what the manifest records, damage of this size can
  /// look like any crash. An earlier manifest is also valid.
  private func oldest(_ files: [String: [UInt8]], _ store: DamagedStore) -> Int {
    let bytes = files[FileName.manifest]
    if bytes != store.files[FileName.manifest] { return 0 }
    if store.kind == .closed { return store.history.count - 1 }
    let sealed = (store.manifest?.sealedSegments ?? []).map(\.highestSequence).max() ?? 0
    return store.lastVersions.lastIndex { $0 <= sealed } ?? 0
  }

  /// Does some damage and describes it.
  private func damage(
    _ files: inout [String: [UInt8]], _ index: Int, _ random: inout FuzzRandom
  ) -> String {
    let names = files.keys.sorted()
    // The manifest is only one of many files, but the most important.
    let name = random.once(in: 8) ? FileName.manifest : random.element(of: names)
    let count = files[name]?.count ?? 0
    switch random.below(12) {
    case 10, 11:
      guard let old = random.element(of: stores[index].earlier)[name] else { return "nothing" }
      let unit = random.once(in: 2) ? 512 : 4096
      let start = random.below(max(1, (old.count + unit - 1) / unit)) * unit
      for place in 0..<max(0, min(count, old.count, start + unit) - start) {
        files[name]?[start + place] = old[start + place]
      }
      if name == FileName.manifest { files[name] = old }
      return "what \(name) had from \(start) at an earlier time"
    case 0: return damageFiles(&files, index, name: name, &random)
    case 1, 2:
      let pages = max(1, (count + 4095) / 4096)
      let page = random.below(pages)
      let other = random.below(pages)
      exchange(&files, name, page, other)
      return "pages \(page) and \(other) of \(name) exchanged"
    case 3:
      let start = random.below(max(1, (count + 511) / 512)) * 512
      for place in start..<min(count, start + 512) { files[name]?[place] = 0 }
      return "a zeroed sector at \(start) of \(name)"
    case 4:
      let start = random.below(max(1, count))
      let length = min(count - start, 1 + random.below(300))
      files[name]?.replaceSubrange(start..<(start + length), with: random.bytes(count: length))
      return "\(length) bytes of garbage at \(start) of \(name)"
    default:
      // Close together, because damage to record heads matters most.
      let start = random.below(max(1, count))
      let flips = count == 0 ? 0 : 1 + random.below(4)
      for _ in 0..<flips {
        files[name]?[min(count - 1, start + random.below(24))] ^= 1 << UInt8(random.below(8))
      }
      return "\(flips) flips from \(start) of \(name)"
    }
  }

  private func exchange(
    _ files: inout [String: [UInt8]], _ name: String, _ page: Int, _ other: Int
  ) {
    guard var bytes = files[name] else { return }
    let first = Array(bytes.dropFirst(4096 * page).prefix(4096))
    let second = Array(bytes.dropFirst(4096 * other).prefix(4096))
    guard first.count == second.count, !first.isEmpty else { return }
    bytes.replaceSubrange(4096 * page..<4096 * page + first.count, with: second)
    bytes.replaceSubrange(4096 * other..<4096 * other + first.count, with: first)
    files[name] = bytes
  }

  private func damageFiles(
    _ files: inout [String: [UInt8]], _ index: Int, name: String, _ random: inout FuzzRandom
  ) -> String {
    switch random.below(3) {
    case 0:
      files[name] = nil
      return "\(name) missing"
    case 1:
      let other = random.element(of: files.keys.sorted() + ["seg-0000000000000009"])
      files[other] = files[name]
      return "\(name) copied to \(other)"
    default:
      files[name] = strangers[index].files[name]
      return "\(name) of another store"
    }
  }
}
