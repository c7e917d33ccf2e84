internal import CairnStore
internal import Synchronization

/// The marks of a cache's removed tags: what is marked, which removals are under way, and the sweep.
///
/// 1. A mark is in the log before it hides anything here, and hides all that it must before the removal of its tag returns.
/// 2. A tag is pending from before the version of its mark is read until the mark hides. What was read or loaded before, and
///    must not outlive the removal, is written under the lock of the log only if no tag of it is pending or marked. No
///    caller's code runs in a removal while its tag is pending, since a writer may wait for the end of that.
/// 3. A mark goes after everything that it hides: from the index, in a pass that could read every head, and then from memory.
///    So a table that is taken before an entry is read hides that entry if any mark of that moment does.
/// 4. Before a mark goes, however it goes, `swept` is at or above it: no load that began before keeps a value with tags.
/// 5. `recordVersion` only grows, also when the record goes. Who finds another record than is known here reads it anew.
final class TagMarks: Sendable {
  /// What the tier in memory is told.
  struct Memory: Sendable {
    /// Entries with tags are in doubt up to this version.
    var doubt: @Sendable (UInt64) -> Void = { _ in }
    /// Those that are in doubt go, and those that others are about to put in.
    var dropDoubtful: @Sendable () -> Void = {}
  }

  /// A pass of the sweep that is under way.
  private struct Pass {
    /// What it removes.
    var table: TagTable
    /// The next shard.
    var shard = 0
    /// Whether it could read all heads.
    var isWhole = true
  }

  private struct State {
    /// A weak reference would make each use of the store slower. It keeps this, so `end` breaks the circle.
    var store: Store?
    var table = TagTable()
    /// The version of the record; of one that is gone, too.
    var recordVersion: UInt64 = 0
    var hasRecord = false
    var pending: [[UInt8]: Int] = [:]
    /// At or above all marks that are gone.
    var swept: UInt64 = 0
    var pass: Pass?
    /// Whether a pass could not read everything. The next comes with the next mark, or where somebody asks for it.
    var isStalled = false
    var memory = Memory()
    /// Of a cache that follows: what the record said that was read last.
    var followed: (table: TagTable, version: UInt64, history: UInt64)?

    /// The record does not count for the limit on the number of entries, from before it is written.
    func reserve() { store?.reserve(count: hasRecord || !pending.isEmpty ? 1 : 0) }
  }

  /// How many entries a round of the sweep looks at before it ends.
  private static let roundCount = 4096

  /// Whether there are marks, or another process may have some.
  private let active = Atomic(false)
  /// At or above all marks that there have been.
  private let highest = Atomic<UInt64>(0)
  private let used = Atomic(false)
  private let state = Lock(State(), waits: true)

  var isActive: Bool { active.load(ordering: .acquiring) }

  /// Whether an entry with tags was seen, or a mark, since the cache was opened.
  var isUsed: Bool { used.load(ordering: .relaxed) }

  func noteUse() { if !isUsed { used.store(true, ordering: .relaxed) } }

  /// From here on it is this store that has the record. Loads that began at or before a version keep nothing with tags.
  func begin(_ store: Store, after version: UInt64 = 0) {
    state.withLock { state in
      state.store = store
      state.swept = max(state.swept, version)
    }
  }

  /// From here on there is no store, nor anything to be swept.
  func end() {
    // It goes out of the lock.
    let store = state.withLock { exchange(&$0.store, with: nil) }
    withExtendedLifetime(store) {}
  }

  func begin(telling memory: Memory) { state.withLock { $0.memory = memory } }

  // MARK: Looking

  /// What is in the record, as far as this object was told; its version is `nil` where there is no record.
  var known: (table: TagTable, version: UInt64?) {
    state.withLock { ($0.table, $0.hasRecord ? $0.recordVersion : nil) }
  }

  /// What is in the record now: of another process, it is read.
  func current() throws(StoreError) -> (table: TagTable, version: UInt64?) {
    isFollowing ? try followed() : known
  }

  /// How many entries of the store are the cache's own.
  func recordCount() throws(StoreError) -> Int { try current().version == nil ? 0 : 1 }

  /// Whether there may be, or have been, a mark that hides an entry with this metadata and version.
  func mayHide(_ metadata: RawSpan, _ version: UInt64) -> Bool {
    version <= highest.load(ordering: .acquiring) && CacheMetadata.hasTags(metadata)
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

  // MARK: Following

  /// Whether another process writes the record.
  var isFollowing: Bool { highest.load(ordering: .relaxed) == .max }

  func follow(_ store: Store) {
    begin(store)
    highest.store(.max, ordering: .relaxed)
    active.store(true, ordering: .releasing)
  }

  /// The record of another process. It is decoded once.
  private func followed() throws(StoreError) -> (table: TagTable, version: UInt64?) {
    let (store, last) = state.withLock { ($0.store, $0.followed) }
    guard let store else { return (TagTable(), nil) }
    do throws(StoreError) {
      let (info, history) = try ReservedKey.marks.withBytes { (key) throws(StoreError) in
        try store.look(at: key)
      }
      guard let info else { return (TagTable(), nil) }
      if let last, last.version == info.version, last.history == history {
        return (last.table, last.version)
      }
      guard let (table, version) = try read(store) else { return (TagTable(), nil) }
      // Of damage the record itself is to tell each time.
      if let table, version == info.version {
        state.withLock { $0.followed = (table, version, history) }
      }
      return (table ?? TagTable(all: .max), version)
    } catch {
      // What may be gone must not be found.
      guard case .corrupt = error else { throw error }
      return (TagTable(all: .max), .max)
    }
  }

  /// What the record says; `nil` where there is none. A table that is `nil` makes no sense.
  private func read(_ store: Store) throws(StoreError) -> (table: TagTable?, version: UInt64)? {
    guard let entry = try store.entry(forKey: ReservedKey.marks) else { return nil }
    let version = entry.info.version
    let table = entry.value.withBytes { TagTable(decoding: $0, recordVersion: version) }
    return (table, version)
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
      state.isStalled = false
      tell(state)
    }
  }

  /// Reads the record anew, since it may be another than is known.
  ///
  /// - Returns: whether it makes sense. Where not, nothing has changed.
  func refresh(_ store: Store) throws(StoreError) -> Bool {
    // What comes after this look has a higher version.
    let last = store.lastVersion
    let found: (table: TagTable?, version: UInt64)?
    do throws(StoreError) { found = try read(store) } catch {
      guard case .corrupt = error else { throw error }
      return false
    }
    guard let (table, version) = found else {
      clear(through: last)
      return true
    }
    guard let table else { return false }
    publish(table, version: version)
    return true
  }

  /// Whether one of the entries up to a version is the record, as far as is known.
  func hasRecord(through version: UInt64) -> Bool {
    state.withLock { $0.hasRecord && $0.recordVersion <= version }
  }

  /// To be told that all entries up to a version are gone, records of marks among them that nobody told of yet.
  func clear(through version: UInt64) {
    let memory = state.withLock { state in
      // The record is newer than its marks. A load that begins now may find this version to be the newest.
      state.swept = max(state.swept, version &- min(version, 1))
      return state.memory
    }
    memory.dropDoubtful()
    state.withLock { state in
      guard version >= state.recordVersion else { return }
      (state.table, state.recordVersion, state.hasRecord) = (TagTable(), version, false)
      state.pass = nil
      tell(state)
    }
  }

  private func tell(_ state: State) {
    let version = state.table.newest
    if version > highest.load(ordering: .relaxed) { highest.store(version, ordering: .releasing) }
    state.memory.doubt(version)
    active.store(!state.table.isEmpty, ordering: .releasing)
    state.reserve()
  }

  // MARK: Sweeping

  /// Has a sweep that could not read everything begin again.
  func resume() { state.withLock { $0.isStalled = false } }

  /// Does one round of the sweep. Of several at once, each goes on from shards that others are through with, so that none
  /// waits: an observer that a round tells of a removal may call for all of the sweep.
  ///
  /// - Returns: whether there is more to do.
  func sweep() throws(StoreError) -> Bool {
    let begun = state.withLock { state -> (store: Store, pass: Pass)? in
      guard !state.isStalled, !state.table.isEmpty, let store = state.store else { return nil }
      return (store, state.pass ?? Pass(table: state.table))
    }
    guard let begun else { return false }
    let store = begun.store
    var pass = begun.pass
    let round = try store.removeRound(fromShard: pass.shard, lookingAt: Self.roundCount) {
      pass.table.hides($0, $1)
    }
    if !round.isWhole { pass.isWhole = false }
    if let next = round.next {
      pass.shard = next
      state.withLock { $0.pass = pass }
      return true
    }
    let isStalled = state.withLock { state in
      state.pass = nil
      // What could not be read may be there again later. Marks that came meanwhile have a pass of their own.
      state.isStalled = !pass.isWhole && state.table == pass.table
      return state.isStalled
    }
    if !pass.isWhole { return !isStalled }
    return try forget(pass.table, store)
  }

  /// Takes marks away that hide nothing on disk any more.
  ///
  /// - Returns: whether there are others.
  private func forget(_ table: TagTable, _ store: Store) throws(StoreError) -> Bool {
    let memory = state.withLock { state in
      state.swept = max(state.swept, table.newest)
      return state.memory
    }
    // Who has removed an entry may not have told memory yet, which only keeps it to itself as long as it is in doubt.
    memory.dropDoubtful()
    var rest: TagTable
    let version: UInt64?
    (rest, version) = known
    guard let version else { return false }
    rest.subtract(table)
    guard let newVersion = try write(rest, expecting: version, to: store) else {
      // Somebody wrote the record, or removed it, who is about to tell.
      return try refresh(store) && isActive
    }
    state.withLock { state in
      // Another record may have come since.
      guard state.recordVersion == version else { return }
      (state.table, state.hasRecord) = (rest, !rest.isEmpty)
      state.recordVersion = newVersion
      tell(state)
    }
    return isActive
  }

  /// Writes the record if it is the expected one, or removes it where nothing is left.
  ///
  /// - Returns: the version from which on it is known; `nil`: it is another one.
  private func write(
    _ table: TagTable, expecting version: UInt64, to store: Store
  ) throws(StoreError) -> UInt64? {
    if table.isEmpty {
      let isRemoved = try store.compareAndRemove(
        forKey: ReservedKey.marks, expecting: version, durability: .process)
      return isRemoved ? version : nil
    }
    let result = try store.compareAndSet(
      table.encoded, forKey: ReservedKey.marks, expecting: version, options: .ofMarks,
      durability: .process)
    guard case .stored(let stored) = result else { return nil }
    return stored
  }
}

extension EntryOptions {
  /// Those of the record of the marks, which never expires, whatever the configuration says.
  static var ofMarks: EntryOptions {
    EntryOptions(lifetime: .unlimited, idleLimit: .seconds(1 << 40))
  }
}
