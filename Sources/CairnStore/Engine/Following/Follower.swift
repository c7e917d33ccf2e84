internal import Synchronization

/// Follows a store that another process may have open for writing.
///
/// 1. A read sees one state of the store, never an earlier one than any previous read.
/// 2. Appended records are added in place. If segments were replaced or removed, the store is
///    reopened alongside the current view, and the new view then replaces the current one as a
///    whole.
/// 3. Published data may be gone, because a recovery discarded it or another store took its place.
///    Then one call throws `outdated`, and later calls see the current store.
///
/// Views are opened and changed under the lock. That lock is never held together with a lock of
/// another store, and a view's locks come after it.
@usableFromInline
package final class Follower: Sendable {
  private let path: String
  private let configuration: StoreConfiguration
  private let environment: Environment
  private let freshness: Freshness
  /// Makes hashes of keys for a memory tier.
  let keyHash = SipHash(secret: (0..<16).map { _ in UInt8.random(in: 0...255) })
  /// An engine without entries. It tells whether the store is open, and why it refuses writes.
  let shell: Engine
  private let clock: StoreClock
  private let views = ReferenceTable<FollowedView>(slotCount: 1)
  /// `nil` once the follower is closed, because it then holds nothing.
  private let state: Lock<State?>
  /// When the follower last checked whether the path still leads to the store, and whether there is
  /// something new.
  private let lookTime: Atomic<Int64>
  /// How long another store at the path may go unnoticed, in milliseconds.
  private static let lookInterval: Int64 = 100

  private struct State {
    var followed: OpenedStore.Followed
    var view: FollowedView
  }

  init(
    path: String, freshness: Freshness, configuration: StoreConfiguration, environment: Environment
  ) throws(StoreError) {
    try configuration.check()
    self.path = path
    self.freshness = freshness
    self.environment = environment
    do throws(StoreError) {
      let followed = try OpenedStore.Followed(
        path: path, configuration: configuration, fileSystem: environment.fileSystem)
      let view = try FollowedView.open(
        followed, configuration: configuration, environment: environment)
      clock = followed.clock
      shell = Engine(
        OpenedStore(followed, environment: environment), configuration: configuration,
        environment: environment)
      views.set(0, to: view)
      state = Lock(State(followed: followed, view: view))
    } catch { throw error.located(in: path) }
    lookTime = Atomic(clock.now().millisecondsSinceEpoch)
    // Later opens happen under a lock. The caller's log may use the store, so it must not be called
    // under that lock.
    var quiet = configuration
    quiet.log = .silent
    self.configuration = quiet
  }

  // MARK: Reads

  /// Runs a read on the current view.
  @usableFromInline
  package func read<Result: ~Copyable>(
    _ body: (Reader) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try readView { (view) throws(StoreError) in try body(view.engine.reader) }
  }

  /// Information about a key, and the history that its version belongs to (`FollowedView.history`).
  func look(
    at key: RawSpan
  ) throws(StoreError) -> (info: EntryInfo, place: RecordPlace)? {
    try readView { (view) throws(StoreError) in
      guard let info = try view.engine.reader.info(forKey: key) else { return nil }
      return (info, RecordPlace(rawValue: view.history))
    }
  }

  func history() throws(StoreError) -> RecordPlace {
    try readView { (view) throws(StoreError) in RecordPlace(rawValue: view.history) }
  }

  @inline(__always)
  private func readView<Result: ~Copyable>(
    _ body: (FollowedView) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    // Begins before the view is found. Otherwise, if the view were replaced before the lookup, the
    // only reference to a segment would be this call's reference to the view, and bytes kept in
    // place would lose their mapping at the end of the call.
    let pin = Pin()
    defer { pin?.end() }
    let view = try view()
    do throws(StoreError) { return try body(view) } catch {
      // Without mappings, a file may have been removed or cut before it was read.
      guard case .corrupt = error else { throw error }
      guard let later = try viewAfter(view) else { throw error.located(in: path) }
      return try body(later)
    }
  }

  /// The reader for the next read.
  @usableFromInline
  package var reader: Reader {
    get throws(StoreError) { try view().engine.reader }
  }

  /// The reader of the last read, or `nil` once closed. Does not check for changes, so that a call
  /// that can throw reports `outdated`.
  var lastReader: Reader? {
    guard let pin = Pin() else { return state.withLock { $0?.view.engine.reader } }
    defer { pin.end() }
    return views[0]?.engine.reader
  }

  /// The result of `make` for the store as seen at one moment.
  func atOneMoment<Value>(
    _ make: (Engine) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    while true {
      let view = try view()
      let value = try make(view.engine)
      // Otherwise the value may contain part of a batch.
      if view.isWhole { return value }
    }
  }

  /// The engine of the current view.
  var engine: Engine { get throws(StoreError) { try view().engine } }

  private func view() throws(StoreError) -> FollowedView {
    try shell.session.checkUsable()
    if let pin = Pin() {
      defer { pin.end() }
      if let view = views[0], isFresh(view) { return view }
    }
    return try refresh(isAsked: false)
  }

  private func isFresh(_ view: FollowedView) -> Bool {
    switch freshness {
    case .everyRead: view.isCurrent && !isDue(after: Self.lookInterval)
    case .interval(let interval): view.isWhole && !isDue(after: max(0, interval.milliseconds))
    case .manual: view.isWhole
    }
  }

  private func isDue(after interval: Int64) -> Bool {
    let last = lookTime.load(ordering: .relaxed)
    let passed = clock.now().millisecondsSinceEpoch.subtracting(clamped: last)
    return passed >= interval || passed < 0
  }

  /// The view after this one, if the store was changed so that this one may lack a file.
  private func viewAfter(_ view: FollowedView) throws(StoreError) -> FollowedView? {
    // Without announcements, only the manifest shows changes.
    let isSame =
      if view.isAnnounced { view.isCurrent } else {
        try !hasChanged(
          view,
          in: Directory(path: path, fileSystem: environment.fileSystem, readOnly: true))
      }
    if isSame { return nil }
    if freshness == .manual { throw .outdated(path: path) }
    return try refresh(isAsked: true)
  }

  // MARK: Advancing

  /// Lets reads see every write acknowledged before the call.
  func catchUp() throws(StoreError) {
    try shell.session.checkUsable()
    _ = try refresh(isAsked: true)
  }

  private func refresh(isAsked: Bool) throws(StoreError) -> FollowedView {
    defer { Reclamation.reclaimIfDue() }
    do throws(StoreError) {
      return try state.withLock { (opened) throws(StoreError) in
        guard var state = opened.take() else { throw StoreError.closed(path: path) }
        defer { opened = state }
        // Another thread may have caught up already.
        if !isAsked, isFresh(state.view) { return state.view }
        if isAsked || isDue(after: Self.lookInterval) {
          lookTime.store(clock.now().millisecondsSinceEpoch, ordering: .relaxed)
          if try look(&state, isAsked: isAsked) { return state.view }
        }
        try goOn(&state)
        return state.view
      }
    } catch { throw error.located(in: path) }
  }

  /// Brings the view up to date with everything published before this call, or later.
  private func goOn(_ state: inout State) throws(StoreError) {
    if state.view.isCurrent { return }
    do throws(StoreError) { if try state.view.goOn(state.followed) { return } } catch {
      // The view is not whole, and no read uses it. Reopening the store shows whether the store is
      // damaged.
      guard case .corrupt = error else { throw error }
    }
    let view = try FollowedView.open(
      state.followed, configuration: configuration, environment: environment)
    let isOutdated =
      view.session != state.view.session || view.lastVersion < state.view.lastVersion
    try replace(&state, by: view, isOutdated: isOutdated)
  }

  /// Checks whether the path still leads to the store.
  ///
  /// - Returns: whether the store was reopened.
  private func look(_ state: inout State, isAsked: Bool) throws(StoreError) -> Bool {
    let directory: Directory
    let found: File?
    do throws(StoreError) {
      directory = try Directory(path: path, fileSystem: environment.fileSystem, readOnly: true)
      found = try directory.openFile(FileName.followPage, mode: .readOnly)
      // Without a manifest, the directory is not a store, or not yet. Reads continue in the
      // previous store.
      guard try directory.openFile(FileName.manifest, mode: .readOnly) != nil else { return false }
    } catch {
      if case .noStore = error { return false }
      throw error
    }
    var isSame = found?.identity == state.followed.page?.file.identity
    if !isSame, state.followed.page == nil {
      // A page from before a reboot is useless.
      isSame =
        try FollowPage.open(
          in: directory, storeIdentifier: state.followed.storeIdentifier,
          bootIdentifier: state.followed.bootIdentifier) == nil
    }
    if isSame {
      if state.view.isAnnounced {
        // A writer that runs an earlier version does not update the page.
        guard state.view.isCurrent, hasChanged(state.view, in: directory) else { return false }
      } else if !isAsked && !hasChanged(state.view, in: directory) {
        // No writer announces changes.
        return false
      }
    }
    let followed = try OpenedStore.Followed(
      path: path, configuration: configuration, fileSystem: environment.fileSystem, clock: clock)
    let view = try FollowedView.open(
      followed, configuration: configuration, environment: environment)
    let isOutdated =
      state.followed.page != nil && (!isSame || view.session != state.view.session)
      || followed.storeIdentifier != state.followed.storeIdentifier
      || view.lastVersion < state.view.lastVersion
    state.followed = followed
    try replace(&state, by: view, isOutdated: isOutdated)
    return true
  }

  /// Whether the manifest in place differs from the one that a view was made from.
  private func hasChanged(_ view: FollowedView, in directory: Directory) -> Bool {
    // If the manifest is overwritten while being read, check again later.
    guard let manifest = try? ManifestFile(directory: directory).readBesideWriter() else {
      return false
    }
    return manifest.generation != view.manifestGeneration
  }

  /// - Parameter isOutdated: whether published data is gone.
  /// - Throws: `outdated` if `isOutdated` is set, once reads find the new view.
  private func replace(
    _ state: inout State, by view: FollowedView, isOutdated: Bool
  ) throws(StoreError) {
    let old = state.view
    // Without announcements, a loss would go unnoticed, so begin a new history.
    let goesOn = !isOutdated && old.isAnnounced && view.isAnnounced
    view.history = goesOn ? old.history : old.history + 1
    state.view = view
    views.set(0, to: view)
    old.retire()
    if isOutdated { throw .outdated(path: path) }
  }

  // MARK: Closing

  /// - Returns: whether this call closed it.
  func close() throws(StoreError) -> Bool {
    guard try shell.close() else { return false }
    defer { Reclamation.reclaimIfDue() }
    try state.withLock { (state) throws(StoreError) in
      guard let view = state.take()?.view else { return }
      views.set(0, to: nil)
      defer { view.retire() }
      try view.engine.close()
    }
    return true
  }
}
