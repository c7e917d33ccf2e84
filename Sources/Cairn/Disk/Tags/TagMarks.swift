internal import CairnStore
internal import Synchronization

/// The marks of a cache's removed tags, the removals in progress, and the sweep.
///
/// 1. A mark is in the log before it hides any entry here. Before the removal of a tag returns, its
///    mark hides every entry that it must.
/// 2. A tag is pending from before its removal reads the version of the mark until the mark hides
///    entries. A value that was read or loaded earlier must not outlive the removal. So it is
///    written under the log's lock, and only if none of its tags is pending or marked. A removal
///    runs no caller's code while its tag is pending, because a writer may be waiting for the
///    removal.
/// 3. A mark is removed after all entries that it hides, in a pass that could read every head. So if
///    a table is taken before an entry is read, the table has every mark that hides the entry.
/// 4. Before a mark is removed for any reason, `swept` is at or above it: a load that began earlier
///    does not keep a value with tags.
/// 5. `recordVersion` only increases, even when the record is removed. Code that finds a record of
///    another version reads it again.
final class TagMarks: Sendable {
  /// A pass of the sweep.
  private struct Pass {
    /// The marks whose entries it removes.
    var table: TagTable
    /// The next shard.
    var shard = 0
    /// Whether it could read all heads so far.
    var isWhole = true
  }

  private struct State {
    /// Strong, because a weak reference would make every use of a store slower. `end` breaks the
    /// cycle.
    var store: Store?
    var table = TagTable()
    /// The version of the record or, if there is none, of the last record.
    var recordVersion: UInt64 = 0
    var hasRecord = false
    var pending: [[UInt8]: Int] = [:]
    /// At or above all removed marks, or `nil` if none was removed. 0 would forbid values that were
    /// loaded before the first write.
    var swept: UInt64?
    var pass: Pass?
    /// Whether a pass could not read everything. The next pass begins with the next mark, or with
    /// `resume`.
    var isStalled = false
    /// Whether the last pass could not read everything.
    var isStuck = false
    /// The last record that a following cache read.
    var followed: (table: TagTable, version: UInt64, history: RecordPlace)?

    /// Excludes the record from the count limit, even before it is written.
    func reserve() { store?.reserve(count: hasRecord || !pending.isEmpty ? 1 : 0) }
  }

  /// Once a round of the sweep has removed this many entries, it begins no further shard.
  private static let roundCount = 4096

  /// Whether marks exist, or may exist in another process.
  private let active = Atomic(false)
  /// At or above all marks of this session, including removed ones.
  private let highest = Atomic<UInt64>(0)
  private let used = Atomic(false)
  private let state = Lock(State(), waits: true)

  var isActive: Bool { active.load(ordering: .acquiring) }

  /// Whether an entry with tags, or a mark, has been seen since the cache was opened.
  var isUsed: Bool { used.load(ordering: .relaxed) }

  func noteUse() { if !isUsed { used.store(true, ordering: .relaxed) } }

  /// Sets the store that has the record.
  func begin(_ store: Store) { state.withLock { $0.store = store } }

  /// Releases the store, because nothing is left to sweep.
  func end() {
    // Released outside the lock.
    let store = state.withLock { exchange(&$0.store, with: nil) }
    withExtendedLifetime(store) {}
  }

  // MARK: Looking

  /// The table as last published, and the version of its record, or `nil` if there is no record.
  var known: (table: TagTable, version: UInt64?) {
    state.withLock { ($0.table, $0.hasRecord ? $0.recordVersion : nil) }
  }

  /// Whether the sweep cannot remove its marks, because it cannot read an entry that they may hide.
  var isStuck: Bool { state.withLock { $0.isStuck } }

  /// The current table, and the version of its record. Reads the record of another process.
  func current() throws(StoreError) -> (table: TagTable, version: UInt64?) {
    isFollowing ? try followed() : known
  }

  /// The number of entries in the store that are the cache's own.
  func recordCount() throws(StoreError) -> Int { try current().version == nil ? 0 : 1 }

  /// Whether a mark may hide, or may have hidden, an entry with this metadata and version.
  func mayHide(_ metadata: RawSpan, _ version: UInt64) -> Bool {
    version <= highest.load(ordering: .acquiring) && CacheMetadata.hasTags(metadata)
  }

  /// Whether a value with these tags must not be kept. It was derived from the entry of this
  /// version, or loaded when this was the newest version. May be called under the log's lock.
  ///
  /// - Parameter isLoaded: whether it was loaded.
  func forbids(_ tags: [[UInt8]], since version: UInt64, isLoaded: Bool) -> Bool {
    if tags.isEmpty { return false }
    return state.withLock { state in
      isLoaded && state.swept.map { version <= $0 } == true
        || tags.contains { state.pending[$0] != nil } || state.table.hides(tags, version)
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

  /// The table of another process, decoded once for each version of its record.
  private func followed() throws(StoreError) -> (table: TagTable, version: UInt64?) {
    let (store, last) = state.withLock { ($0.store, $0.followed) }
    guard let store else { return (TagTable(), nil) }
    do throws(StoreError) {
      let key = ReservedKey.marks
      guard let (info, history) = try store.look(at: key.rawSpan, isAccess: false) else {
        return (TagTable(), nil)
      }
      if let last, last.version == info.version, last.history == history {
        return (last.table, last.version)
      }
      guard let (table, version) = try read(store) else { return (TagTable(), nil) }
      // A damaged record is read again each time.
      if let table, version == info.version {
        state.withLock { $0.followed = (table, version, history) }
      }
      return (table ?? TagTable(all: .max), version)
    } catch {
      // No removed entry may reappear.
      guard case .corrupt = error else { throw error }
      return (TagTable(all: .max), .max)
    }
  }

  /// The record, or `nil` if there is none. Its table is `nil` if the value is damaged.
  private func read(_ store: Store) throws(StoreError) -> (table: TagTable?, version: UInt64)? {
    guard let entry = try store.entry(forKey: ReservedKey.marks) else { return nil }
    let version = entry.info.version
    let table = TagTable(decoding: entry.value.rawSpan, recordVersion: version)
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

  /// Publishes a record that was written or read, unless a newer one is known.
  func publish(_ table: TagTable, version: UInt64) {
    noteUse()
    state.withLock { state in
      guard version > state.recordVersion else { return }
      (state.table, state.recordVersion, state.hasRecord) = (table, version, true)
      state.isStalled = false
      tell(state)
    }
  }

  /// Reads the record again, because the known one may be outdated.
  ///
  /// - Returns: whether it is sound. If not, nothing has changed.
  func refresh(_ store: Store) throws(StoreError) -> Bool {
    // Every later write has a higher version.
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

  /// Whether the known record is one of the entries up to a version.
  func hasRecord(through version: UInt64) -> Bool {
    state.withLock { $0.hasRecord && $0.recordVersion <= version }
  }

  /// Notes that all entries up to a version are gone, including a record that is not published yet.
  func clear(through version: UInt64) {
    state.withLock { state in
      // The record is newer than its marks. For a load that begins now, this version may be the
      // newest.
      if version > 0 { state.swept = max(state.swept ?? 0, version - 1) }
      guard version >= state.recordVersion else { return }
      (state.table, state.recordVersion, state.hasRecord) = (TagTable(), version, false)
      state.pass = nil
      tell(state)
    }
  }

  private func tell(_ state: State) {
    let version = state.table.newest
    if version > highest.load(ordering: .relaxed) { highest.store(version, ordering: .releasing) }
    active.store(!state.table.isEmpty, ordering: .releasing)
    state.reserve()
  }

  // MARK: Sweeping

  /// Lets the sweep begin again after a pass that could not read everything.
  func resume() { state.withLock { $0.isStalled = false } }

  /// Does one round of the sweep. Concurrent rounds do not wait for each other, because an observer
  /// of a removal may request the whole sweep. Each begins at the shard that earlier rounds have
  /// reached.
  ///
  /// - Returns: whether more work remains.
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
      // Unreadable heads may become readable. New marks get their own pass.
      state.isStalled = !pass.isWhole && state.table == pass.table
      state.isStuck = !pass.isWhole
      return state.isStalled
    }
    if !pass.isWhole { return !isStalled }
    return try forget(pass.table, store)
  }

  /// Removes marks that no longer hide anything on disk.
  ///
  /// - Returns: whether other marks remain.
  private func forget(_ table: TagTable, _ store: Store) throws(StoreError) -> Bool {
    state.withLock { $0.swept = max($0.swept ?? 0, table.newest) }
    var rest: TagTable
    let version: UInt64?
    (rest, version) = known
    guard let version else { return false }
    rest.subtract(table)
    guard let newVersion = try write(rest, expecting: version, to: store) else {
      // Another thread has replaced or removed the record and has not published that yet.
      return try refresh(store) && isActive
    }
    state.withLock { state in
      // A newer record may have been published.
      guard state.recordVersion == version else { return }
      (state.table, state.hasRecord) = (rest, !rest.isEmpty)
      state.recordVersion = newVersion
      tell(state)
    }
    return isActive
  }

  /// Writes the record if it is still the expected one, or removes it if no mark is left.
  ///
  /// - Returns: the new `recordVersion`, or `nil` if the record was another one.
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
  /// The options of the record of the marks, which never expires, whatever the configuration says.
  static var ofMarks: EntryOptions {
    EntryOptions(lifetime: .unlimited, idleLimit: .seconds(1 << 40))
  }
}
