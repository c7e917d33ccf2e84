import CairnLibC
import CairnRepair
import CairnStore

/// Opens a damaged store, reads all of it, verifies every byte, and checks each result: the right
/// value or an error, or an earlier state of the store if the damage can look like a crash.
package struct DamageCheck {
  private let store: DamagedStore
  private let keys: [[UInt8]]
  package private(set) var tally = Tally()

  package init(_ store: DamagedStore) {
    self.store = store
    keys = Set(store.history.flatMap(\.keys)).sorted { $0.lexicographicallyPrecedes($1) }
  }

  /// - Parameters:
  ///   - oldest: the oldest state of the history that may be found.
  ///   - damagedFile: the one damaged file, if known: errors must name it.
  ///   - outcome: what may happen to the store, if more is known.
  ///   - isOneBit: whether one bit is flipped, so that at most one key may be refused.
  ///   - alwaysVerifies: whether the store is also verified, and its keys iterated, if nothing was
  ///     refused.
  package mutating func check(
    _ files: [String: [UInt8]], oldest: Int, damagedFile: String? = nil,
    outcome: DamageOutcome = .any, isOneBit: Bool = false, alwaysVerifies: Bool = true
  ) throws {
    let disk = store.disk(with: files)
    let process = SimulatedProcess.start(on: disk, seed: 3)
    defer { process.kill() }
    var hasFailed = false
    do {
      let opened = try process.open(store.configuration)
      let found = try read(opened, alsoAll: alwaysVerifies)
      let errors = found.compactMap { result -> StoreError? in
        if case .failure(let error) = result { error } else { nil }
      }
      hasFailed = !errors.isEmpty
      for error in errors { try checkName(error, damagedFile) }
      if isOneBit, errors.count > 1 { throw FuzzFailure("one bit costs \(errors.count) keys") }
      try match(found, oldest: oldest)
      try match(found, outcome)
      tally[hasFailed ? "values refused" : "right"] += 1
    } catch let error as StoreError {
      hasFailed = true
      try Self.judge(error)
      try checkName(error, damagedFile)
      try checkUnchanged(disk, files)
      switch outcome {
      case .any, .refused: break
      default: throw FuzzFailure("the whole store is refused: \(error)")
      }
      tally["opens refused"] += 1
    }
    process.kill()
    if hasFailed || alwaysVerifies { try verify(files, hasFailed: hasFailed) }
  }

  // MARK: Reading

  /// - Parameter alsoAll: whether to look for keys that should not be there.
  private func read(
    _ opened: Store, alsoAll: Bool
  ) throws -> [Result<ByteEntry?, StoreError>] {
    var found: [Result<ByteEntry?, StoreError>] = []
    for key in keys {
      do throws(StoreError) { found.append(.success(try opened.entry(forKey: key))) } catch {
        try Self.judge(error)
        found.append(.failure(error))
      }
    }
    guard alsoAll else { return found }
    do {
      try opened.forEachKey { key in
        let key = key.copied()
        if !keys.contains(key) { throw FuzzFailure("a key that never existed") }
        return .next
      }
      _ = try opened.count()
    } catch let error as StoreError { try Self.judge(error) }
    return found
  }

  private func match(_ found: [Result<ByteEntry?, StoreError>], oldest: Int) throws {
    for state in store.history[oldest...].reversed() where isEqual(found, state) { return }
    guard let last = store.history.last else { return }
    let wrong = zip(keys, found).filter { key, result in
      if case .success(let entry) = result { !Self.isEqual(entry, last[key]) } else { false }
    }
    let names = wrong.prefix(4).map { key, result in
      let entry = try? result.get()
      return "\(String(decoding: key, as: UTF8.self)): \(entry.map { "\($0.info)" } ?? "nothing")"
    }
    throw FuzzFailure("a state that never existed, or one that must not come back: \(names)")
  }

  /// Whether exactly the expected keys were lost or refused.
  private mutating func match(
    _ found: [Result<ByteEntry?, StoreError>], _ outcome: DamageOutcome
  ) throws {
    var refused: Set<[UInt8]> = []
    for (key, result) in zip(keys, found) {
      if case .failure = result { refused.insert(key) }
    }
    var expected: Set<[UInt8]> = []
    var state = store.history.count - 1
    switch outcome {
    case .any: return
    case .refused: throw FuzzFailure("the damaged store opens")
    case .nothing: tally["cost nothing"] += 1
    case .key(let key):
      expected = [key]
      tally["cost one key"] += 1
    case .state(let number):
      state = number
      tally["cost the unfinished end"] += 1
    }
    if refused != expected {
      let names = refused.symmetricDifference(expected).map { String(decoding: $0, as: UTF8.self) }
      throw FuzzFailure("keys wrongly refused or wrongly read: \(names.sorted())")
    }
    if !isEqual(found, store.history[state]) { throw FuzzFailure("not the expected state") }
  }

  private func isEqual(
    _ found: [Result<ByteEntry?, StoreError>], _ state: DamagedStore.Contents
  ) -> Bool {
    for (index, result) in found.enumerated() {
      if case .success(let entry) = result, !Self.isEqual(entry, state[keys[index]]) {
        return false
      }
    }
    return true
  }

  private static func isEqual(_ found: ByteEntry?, _ expected: ByteEntry?) -> Bool {
    guard let found, let expected else { return found == nil && expected == nil }
    // The time of an entry's last read is not kept.
    var info = found.info
    info.accessed = expected.info.accessed
    return info == expected.info && isEqual(found.value, expected.value)
      && found.metadata == expected.metadata
  }

  /// Compares all bytes at once; `==` compares them one by one.
  private static func isEqual(_ first: [UInt8], _ second: [UInt8]) -> Bool {
    guard first.count == second.count, !first.isEmpty else { return first.count == second.count }
    return unsafe memcmp(first, second, first.count) == 0
  }

  // MARK: Errors

  private func checkName(_ error: StoreError, _ damagedFile: String?) throws {
    guard let damagedFile else { return }
    switch error {
    case .corrupt(let corruption) where corruption.file == damagedFile: break
    case .unsupportedVersion(damagedFile, _): break
    default: throw FuzzFailure("an error that does not name \(damagedFile): \(error)")
    }
  }

  private static func judge(_ error: StoreError) throws {
    switch error {
    case .corrupt, .unsupportedVersion, .notAStore, .noStore: break
    default: throw FuzzFailure("an unexpected error: \(error)")
    }
  }

  /// A refused open must change no file, but may recreate the lock file.
  private func checkUnchanged(_ disk: SimulatedDisk, _ files: [String: [UInt8]]) throws {
    var names = Set(disk.names(at: SimulatedProcess.path))
    if files[FileName.lock] == nil { names.remove(FileName.lock) }
    if names != Set(files.keys) {
      let changed = names.symmetricDifference(files.keys).sorted()
      throw FuzzFailure("an open that is refused makes, moves or removes \(changed)")
    }
    for (name, bytes) in files
    where disk.contents(of: "\(SimulatedProcess.path)/\(name)") != bytes {
      throw FuzzFailure("an open that is refused changes \(name)")
    }
  }

  /// Verification must find whatever made the open or a read fail.
  private mutating func verify(_ files: [String: [UInt8]], hasFailed: Bool) throws {
    let checker = SimulatedProcess.start(on: store.disk(with: files), seed: 4)
    defer { checker.kill() }
    do {
      let report = try Store.verify(path: SimulatedProcess.path, environment: checker.environment)
      if hasFailed, report.errors.isEmpty {
        throw FuzzFailure("verify finds nothing wrong")
      }
      if !report.errors.isEmpty { tally["found by verify"] += 1 }
    } catch let error as StoreError {
      try Self.judge(error)
      tally["refused by verify"] += 1
    }
  }
}
