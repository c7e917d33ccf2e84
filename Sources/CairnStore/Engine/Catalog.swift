/// The files of the store: the manifest, the ids that have been assigned, and the files to remove.
///
/// 1. If the manifest on disk lists a file as part of the store, the file exists under its name and
///    is as durable as the manifest says.
/// 2. The manifest on disk explains every file that exists: the file is part of the store, its id
///    is listed as pending or retired, or its id is beyond `nextID`. An id leaves these lists only
///    when its name is durably gone.
/// 3. The lock is held while the manifest is replaced, so replacements run one at a time, and each
///    builds on the previous one.
/// 4. If it is unknown which of two manifests is on disk, the store writes nothing more.
/// 5. The catalog changes nothing once the store's lock has been released or its directory has
///    vanished.
///
/// The lock is taken before the log's.
final class Catalog: Sendable {
  let session: Session
  let log: LogWriter
  let bootIdentifier: [UInt8]
  private let state: Lock<State>

  struct State: ~Copyable {
    var manifest: Manifest
    /// The segment with room that a clean close left open.
    var resumable: Segment?
    /// Retired ids whose files have been unlinked.
    var unlinkedIDs: Set<UInt64>
    /// Retired ids whose names are durably gone. The next manifest does not list them.
    var goneIDs: Set<UInt64> = []
    /// The manifest for the start of the next session, if it is ready.
    var next: Manifest?
    /// Segments that large writes took out of the log. Their files are removed once the name of a
    /// manifest that does not list them is on disk.
    var leftSegments: [Segment] = []
    /// Whether the name of the current manifest is on disk.
    var isSettled = true
    /// The failure, if any, that left it unknown which manifest is on disk.
    var failure: SystemFailure?

    /// Reserves an id for a file that takes a long time to write. Manifests written in the meantime
    /// list the id as pending, so that the next open removes the file if a crash leaves it. Until
    /// such a manifest is written, the id is beyond the highest id of the manifest on disk, which
    /// has the same effect.
    ///
    /// The caller must remove the id from `pendingIDs`, in the manifest that lists the file or
    /// after unlinking the file.
    mutating func reserveID() -> UInt64 {
      let id = manifest.nextID
      manifest.nextID += 1
      manifest.pendingIDs.append(id)
      return id
    }

    /// Records that a failure leaves it unknown which manifest is on disk. Returns the error to
    /// throw.
    mutating func failed(_ error: StoreError) -> StoreError {
      failure = error.asFailure
      return .poisoned(cause: error.asFailure)
    }

    /// The error to throw after a failed exchange of names. Without room, nothing has changed.
    mutating func failedExchange(_ error: StoreError) -> StoreError {
      if case .noSpace = error { return error }
      return failed(error)
    }
  }

  init(_ session: Session, _ log: LogWriter, _ parts: borrowing OpenedStore) {
    self.session = session
    self.log = log
    bootIdentifier = parts.bootIdentifier
    state = Lock(
      State(
        manifest: parts.manifest, resumable: parts.resumable,
        unlinkedIDs: Set(parts.manifest.retiredIDs), next: parts.next, failure: nil))
  }

  private var directory: Directory { session.directory }

  // MARK: Lookups

  func withLock<Value, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try state.withLock(body)
  }

  /// Runs `body` under the lock. Does nothing if the store's lock has been released, or if the
  /// directory may belong to another store.
  func whileUsable<Value>(_ body: (inout State) -> Value) -> Value? {
    state.withLock { state in
      session.storeLock.isHeld && !session.lookForPlace() ? body(&state) : nil
    }
  }

  /// The segments that the manifest lists as sealed.
  var sealedIDs: Set<SegmentID> {
    state.withLock { Set($0.manifest.sealedSegments.map(\.id)) }
  }

  // MARK: Replacing the manifest

  /// Runs `body` under the catalog's lock. If a failure leaves it unknown what is on disk, poisons
  /// the store.
  func change<Value>(
    _ body: (inout State) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    do {
      return try state.withLock { (state) throws(StoreError) -> Value in
        // After the store's lock is released, no thread may write to the store.
        if !session.storeLock.isHeld { throw .closed(path: session.path) }
        if session.lookForPlace() { throw .vanished(path: session.path) }
        let value = try body(&state)
        makeNextReady(&state)
        return value
      }
    } catch {
      // The directory may have vanished in the meantime.
      if case .closed = error {
      } else if session.lookForPlace() {
        throw .vanished(path: session.path)
      }
      if case .poisoned(let cause) = error { log.poison(cause) }
      throw error
    }
  }

  /// Prepares the manifest for the start of the next session, unless it is ready already.
  private func makeNextReady(_ state: inout State) {
    guard state.manifest.isClean, state.failure == nil, !session.isReadOnly,
      state.next?.generation != state.manifest.generation &+ 1
    else { return }
    // Without a ready manifest, a session begins with a sync.
    state.next = try? ManifestFile(directory: directory).makeReady(
      after: &state.manifest, in: bootIdentifier, at: session.clock.now())
  }

  /// Replaces the manifest with one that also reserves `count` more places for segments.
  func replace(
    _ state: inout State, reserving count: Int, _ change: (inout Manifest) -> Void
  ) throws(StoreError) {
    let salts = try directory.randomNumbers(count: max(0, count))
    try replace(&state) { manifest in
      change(&manifest)
      manifest.reserve(salts: salts)
    }
    let reserved = Array(state.manifest.openSegments.suffix(salts.count))
    log.withLock { $0.reserved += reserved }
  }

  /// Replaces the manifest with a changed one.
  ///
  /// - Throws: `poisoned` if it is unknown which of the two is on disk; the caller must then stop.
  ///   After any other error, nothing has changed.
  func replace(
    _ state: inout State, lastSequence: SequenceNumber? = nil,
    _ change: (inout Manifest) -> Void
  ) throws(StoreError) {
    let next = try successor(&state, lastSequence: lastSequence, change)
    let file = ManifestFile(directory: directory)
    try write(next, &state)
    do throws(StoreError) { try file.exchange() } catch { throw state.failedExchange(error) }
    log.announce(generation: next.generation)
    let start = ContinuousClock.now
    do throws(StoreError) { try file.settle() } catch { throw state.failed(error) }
    log.setSyncTime(.now - start)
    state.manifest = next
    state.goneIDs = exchange(&state.unlinkedIDs, with: [])
    file.reserve(next)
  }

  /// Makes all names in the directory durable. After a failure, a retry would falsely succeed.
  func synchronizeNames(_ state: inout State) throws(StoreError) {
    do throws(StoreError) { try directory.synchronize() } catch { throw state.failed(error) }
    state.isSettled = true
    state.goneIDs.formUnion(exchange(&state.unlinkedIDs, with: []))
  }

  /// Writes and syncs a manifest, for an exchange that follows.
  func write(_ next: Manifest, _ state: inout State) throws(StoreError) {
    let file = ManifestFile(directory: directory)
    let prepared = try file.prepare(next)
    do throws(StoreError) { try file.synchronize(prepared) } catch {
      // A filesystem that does not really reserve blocks may have no room. In that case nothing has
      // changed.
      if case .noSpace = error { throw error }
      throw state.failed(error)
    }
  }

  /// Puts a written manifest into place without a sync. `settle` makes its name durable. The caller
  /// reserves space for the next manifest.
  func installUnsettled(_ next: Manifest, _ state: inout State) throws(StoreError) {
    let file = ManifestFile(directory: directory)
    do throws(StoreError) { try file.exchange() } catch { throw state.failedExchange(error) }
    log.announce(generation: next.generation)
    // A sync of the directory may have begun before the exchange.
    log.commits.noteName()
    state.manifest = next
    state.goneIDs = []
    state.isSettled = false
    do throws(StoreError) { try file.dropSpare() } catch {
      // DURABILITY: once the exchange is on disk, the file may be written to again.
      try synchronizeNames(&state)
    }
  }

  /// Waits until the name of the current manifest is on disk. No lock is held, so no write waits
  /// for this sync.
  func settle() throws(StoreError) {
    let (unsettled, unlinked) = withLock { state in
      (state.isSettled ? nil : state.manifest.generation, state.unlinkedIDs)
    }
    guard let unsettled else { return }
    do throws(StoreError) { try directory.synchronize() } catch {
      try change { (state) throws(StoreError) in throw state.failed(error) }
    }
    _ = whileUsable { state in
      state.goneIDs.formUnion(unlinked.intersection(state.unlinkedIDs))
      state.unlinkedIDs.subtract(unlinked)
      guard state.manifest.generation == unsettled else { return }
      state.isSettled = true
    }
  }

  /// The next manifest, with changes. The files that it no longer lists are durably gone.
  func successor(
    _ state: inout State, lastSequence: SequenceNumber? = nil,
    _ change: (inout Manifest) -> Void
  ) throws(StoreError) -> Manifest {
    if let failure = state.failure { throw .poisoned(cause: failure) }
    // DURABILITY: the last exchange must be on disk before the next one.
    if !state.isSettled { try synchronizeNames(&state) }
    var next = state.manifest
    // DURABILITY: if the manifest no longer lists an id, its file must be durably gone. Otherwise
    // the next open would find a file that nothing explains.
    next.retiredIDs.removeAll { state.goneIDs.contains($0) }
    change(&next)
    next.generation &+= 1
    next.lastSequence = lastSequence ?? log.lastSequence
    next.lastTime = session.clock.now()
    next.bootIdentifier = bootIdentifier
    return next
  }
}
