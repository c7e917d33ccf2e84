internal import CairnStore
internal import Synchronization

/// The marks of a cache's removed tags, as they stand in the record of them, and what is to be known of removals under way.
///
/// 1. A mark is in the log before it hides anything here, and hides all it must before the removal of its tag returns.
/// 2. A tag is pending from before the version of its mark is read until the mark hides. What was read or loaded before, and
///    must not outlive the removal, is written under the lock of the log only if no tag of it is pending or marked.
/// 3. A mark goes once nothing is left that it hides. Then loads that began before it keep no value with tags.
final class TagMarks: Sendable {
  fileprivate struct State {
    weak var store: Store?
    var table = TagTable()
    /// The version of the record; of one that is gone, too.
    var recordVersion: UInt64 = 0
    var hasRecord = false
    var pending: [[UInt8]: Int] = [:]
    /// The newest mark that is gone.
    var swept: UInt64 = 0
    /// What the pass of the sweep removes that is under way.
    var pass: (table: TagTable, shard: Int)?
    var isSweeping = false
    /// Tells the tier in memory of the newest mark.
    var tellMemory: @Sendable (UInt64) -> Void = { _ in }
  }

  /// How many entries a round of the sweep looks at before it ends.
  private static let roundCount = 4096

  /// The newest mark; 0: there is none.
  let newest = Atomic<UInt64>(0)
  private let used = Atomic(false)
  private let state = Lock(State(), waits: true)

  /// What is in the record, as far as this object was told; its version is `nil` where there is no record.
  var current: (table: TagTable, version: UInt64?) {
    if isFollowing { return followed() }
    return state.withLock { ($0.table, $0.hasRecord ? $0.recordVersion : nil) }
  }

  /// How many entries of the store are the cache's own.
  var recordCount: Int { current.version == nil ? 0 : 1 }

  var isActive: Bool { newest.load(ordering: .acquiring) != 0 }

  /// Whether an entry with tags was seen, or a mark, since the cache was opened.
  var isUsed: Bool { used.load(ordering: .relaxed) }

  func noteUse() { if !isUsed { used.store(true, ordering: .relaxed) } }

  /// From here on it is this store that has the record.
  func begin(_ store: Store) { state.withLock { $0.store = store } }

  func begin(tellingMemory body: @escaping @Sendable (UInt64) -> Void) {
    state.withLock { $0.tellMemory = body }
  }

  // MARK: Following

  /// Whether another process writes the record. It is read with every look then.
  var isFollowing: Bool { newest.load(ordering: .relaxed) == .max }

  func follow(_ store: Store) {
    begin(store)
    newest.store(.max, ordering: .releasing)
  }

  private func followed() -> (table: TagTable, version: UInt64?) {
    guard let store = state.withLock({ $0.store }) else { return (TagTable(), nil) }
    do throws(StoreError) {
      guard let entry = try store.entry(forKey: ReservedKey.marks) else { return (TagTable(), nil) }
      let version = entry.info.version
      let table = entry.value.withBytes { TagTable(decoding: $0, recordVersion: version) }
      return (table ?? TagTable(all: .max), version)
    } catch {
      // What may be gone must not be found.
      return (TagTable(all: .max), nil)
    }
  }

  // MARK: Looking

  /// Whether an entry with this metadata and version is not found.
  func hides(_ metadata: RawSpan, _ version: UInt64) -> Bool {
    if version > newest.load(ordering: .acquiring) || !CacheMetadata.hasTags(metadata) {
      return false
    }
    if isFollowing { return followed().table.hides(metadata, version) }
    return state.withLock { $0.table.hides(metadata, version) }
  }

  /// Whether what was made of version `version`, or loaded since it was the newest, may not be kept with these tags. May be
  /// called under the lock of the log.
  ///
  /// - Parameter isLoaded: whether it was loaded.
  func forbids(_ tags: [[UInt8]], since version: UInt64, isLoaded: Bool) -> Bool {
    if tags.isEmpty { return false }
    return state.withLock { state in
      isLoaded && version <= state.swept || tags.contains { state.pending[$0] != nil }
        || state.table.hides(tags, version)
    }
  }

  /// Waits until none of these tags is pending.
  func wait(for tags: [[UInt8]]) {
    state.waitUntil { state in tags.contains { state.pending[$0] != nil } ? nil : () }
  }

  // MARK: Marking

  func beginRemoval(of tag: [UInt8]) {
    noteUse()
    state.withLock { state in
      state.pending[tag, default: 0] += 1
      state.reserve()
    }
  }

  func endRemoval(of tag: [UInt8]) {
    state.withLock { state in
      let count = (state.pending[tag] ?? 1) - 1
      state.pending[tag] = count > 0 ? count : nil
      state.reserve()
    }
    state.wakeAll()
  }

  /// To be told of a record that was written or found; an older one than is known counts for nothing.
  func publish(_ table: TagTable, version: UInt64) {
    noteUse()
    state.withLock { state in
      guard version > state.recordVersion else { return }
      (state.table, state.recordVersion, state.hasRecord) = (table, version, true)
      tellNewest(state)
    }
  }

  /// To be told that all entries up to a version are gone.
  ///
  /// - Returns: how many records of marks were among them.
  func clear(through version: UInt64) -> Int {
    state.withLock { state in
      guard state.hasRecord, state.recordVersion <= version else { return 0 }
      state.clear()
      tellNewest(state)
      return 1
    }
  }

  private func tellNewest(_ state: State) {
    let version = state.table.newest
    newest.store(version, ordering: .releasing)
    state.tellMemory(version)
    state.reserve()
  }

  // MARK: Sweeping

  /// Does one round of the sweep.
  ///
  /// - Returns: whether there is more to do.
  func sweep() throws(StoreError) -> Bool {
    let begun = state.withLock { state -> (store: Store, pass: (table: TagTable, shard: Int))? in
      guard !state.isSweeping, !state.table.isEmpty, let store = state.store else { return nil }
      state.isSweeping = true
      return (store, state.pass ?? (state.table, 0))
    }
    guard let (store, pass) = begun else { return false }
    defer { state.withLock { $0.isSweeping = false } }
    let next = try store.removeRound(fromShard: pass.shard, lookingAt: Self.roundCount) {
      pass.table.hides($0, $1)
    }
    state.withLock { state in state.pass = next.map { (pass.table, $0) } }
    if next != nil { return true }
    try forget(pass.table, store)
    return isActive
  }

  /// Takes marks away that hide nothing any more. Where somebody writes others at this moment, they go after the next pass.
  private func forget(_ table: TagTable, _ store: Store) throws(StoreError) {
    let (current, version) = current
    guard let version else { return }
    var rest = current
    rest.subtract(table)
    let newVersion: UInt64?
    if rest.isEmpty {
      guard
        try store.compareAndRemove(
          forKey: ReservedKey.marks, expecting: version, durability: .process)
      else { return }
      newVersion = nil
    } else {
      let result = try store.compareAndSet(
        rest.encoded, forKey: ReservedKey.marks, expecting: version, options: .ofMarks,
        durability: .process)
      guard case .stored(let stored) = result else { return }
      newVersion = stored
    }
    state.withLock { state in
      state.swept = max(state.swept, table.newest)
      // Another record may have come since.
      guard state.recordVersion == version else { return }
      if let newVersion {
        (state.table, state.recordVersion) = (rest, newVersion)
      } else {
        state.clear()
      }
      tellNewest(state)
    }
  }
}

extension TagMarks.State {
  mutating func clear() {
    table = TagTable()
    hasRecord = false
    pass = nil
  }

  /// The record does not count for the limit on the number of entries, from before it is written.
  func reserve() { store?.reserve(count: hasRecord || !pending.isEmpty ? 1 : 0) }
}

extension EntryOptions {
  /// Those of the record of the marks, which never expires, whatever the configuration says.
  static var ofMarks: EntryOptions {
    EntryOptions(lifetime: .unlimited, idleLimit: .seconds(1 << 40))
  }
}
