/// A file that a removal of all has left.
enum LeftFile {
  case segment(Segment)
  case checkpoint(UInt64)
}

/// What files the store is made of: the manifest, which ids have been given out, and which files are to go.
///
/// 1. A file that the manifest on disk lists as part of the store is there, under its name, and durable as far as
///    the manifest vouches for it.
/// 2. A file that no manifest on disk explains does not exist: its id is listed as pending or retired, or lies beyond
///    `nextID`. An id leaves these lists only when its name is gone for good.
/// 3. The lock is held while the manifest is replaced, so there is one replacement at a time, and each follows the one
///    before.
/// 4. Where it is not known which of two manifests is on disk, nothing is written any more.
/// 5. Nothing is changed after the store's lock was given up, or once its directory has vanished.
///
/// The lock is taken before that of the log.
final class Catalog: Sendable {
  let session: Session
  let log: LogWriter
  let bootIdentifier: [UInt8]
  private let state: Lock<State>

  struct State: ~Copyable {
    var manifest: Manifest
    /// The segment that a clean close left open and that has room.
    var resumable: Segment?
    /// Retired ids whose files were unlinked since the manifest was written.
    var unlinkedIDs: Set<UInt64>
    /// The manifest that the next session begins with, if it is ready.
    var next: Manifest?
    /// A manifest that removes all, if it is ready.
    var emptied: Manifest?
    /// What removals of all have left: it goes once the names that they gave are on disk.
    var leftFiles: [LeftFile] = []
    /// Whether the name of the one in place is on disk.
    var isSettled = true
    /// Whether a replacement failed so that it is not known which manifest is on disk.
    var failure: SystemFailure?

    /// Takes an id for a file that is long in the making. A manifest that is written meanwhile lists
    /// the id as pending, so that the next open removes what a crash leaves; before there is such a
    /// manifest, the id is beyond the highest that the one on disk knows, which says the same.
    ///
    /// Whoever takes it removes it from `pendingIDs` again: with the manifest that lists the file, or
    /// after the file was unlinked.
    mutating func reserveID() -> UInt64 {
      let id = manifest.nextID
      manifest.nextID += 1
      manifest.pendingIDs.append(id)
      return id
    }

    /// Forgets the manifest that removes all: its places are free, or listed.
    mutating func dropEmptied() {
      guard let emptied else { return }
      let ids = Set(emptied.openSegments.map(\.id.rawValue))
      manifest.pendingIDs.removeAll { ids.contains($0) }
      self.emptied = nil
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

  // MARK: Looking

  func withLock<Value, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try state.withLock(body)
  }

  /// Runs `body` under the lock where files may still be removed: not after the store's lock was given up, nor where the
  /// directory may be another store's.
  func whileUsable<Value>(_ body: (inout State) -> Value) -> Value? {
    state.withLock { state in
      session.storeLock.isHeld && !session.lookForPlace() ? body(&state) : nil
    }
  }

  /// Which segments the manifest lists as sealed.
  var sealedIDs: Set<SegmentID> {
    state.withLock { Set($0.manifest.sealedSegments.map(\.id)) }
  }

  // MARK: Replacing the manifest

  /// Runs `body` under the catalog's lock. A failure that leaves it open what is on disk poisons
  /// the store.
  func change<Value>(
    _ body: (inout State) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    do {
      return try state.withLock { (state) throws(StoreError) -> Value in
        // Whoever has given the store's lock up must not write to it.
        if !session.storeLock.isHeld { throw .closed(path: session.path) }
        if session.lookForPlace() { throw .vanished(path: session.path) }
        let value = try body(&state)
        makeNextReady(&state)
        return value
      }
    } catch {
      // It may have gone meanwhile.
      if case .closed = error {
      } else if session.lookForPlace() {
        throw .vanished(path: session.path)
      }
      if case .poisoned(let cause) = error { log.poison(cause) }
      throw error
    }
  }

  /// Makes the manifest ready that the next session begins with, unless it is.
  private func makeNextReady(_ state: inout State) {
    guard state.manifest.isClean, state.failure == nil, !session.isReadOnly,
      state.next?.generation != state.manifest.generation &+ 1
    else { return }
    // A session that finds none waits for a sync.
    state.next = try? ManifestFile(directory: directory).makeReady(
      after: &state.manifest, in: bootIdentifier, at: session.clock.now())
  }

  /// Replaces the manifest by one that also reserves so many more places for segments.
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

  /// Replaces the manifest by a changed one.
  ///
  /// - Throws: `poisoned` where it is not known which of the two is on disk: the caller must not
  ///   go on. Any other error has changed nothing.
  func replace(
    _ state: inout State, lastSequence: SequenceNumber? = nil,
    _ change: (inout Manifest) -> Void
  ) throws(StoreError) {
    let next = try successor(&state, lastSequence: lastSequence, change)
    let file = ManifestFile(directory: directory)
    let prepared = try file.prepare(next)
    do throws(StoreError) { try file.write(prepared) } catch {
      // Without room, on a filesystem that does not really reserve it, nothing has changed.
      if case .noSpace = error { throw error }
      state.failure = error.asFailure
      throw .poisoned(cause: error.asFailure)
    }
    do throws(StoreError) {
      try file.install { log.announce(generation: next.generation) }
    } catch {
      state.failure = error.asFailure
      throw .poisoned(cause: error.asFailure)
    }
    state.manifest = next
    state.unlinkedIDs = []
    file.reserve(next)
  }

  /// The manifest that follows, changed. What it no longer lists is gone for good.
  func successor(
    _ state: inout State, lastSequence: SequenceNumber? = nil,
    _ change: (inout Manifest) -> Void
  ) throws(StoreError) -> Manifest {
    if let failure = state.failure { throw .poisoned(cause: failure) }
    var next = state.manifest
    if !state.unlinkedIDs.isEmpty || !state.isSettled {
      // DURABILITY: a file whose id the manifest no longer holds must be gone for good, or the
      // next open would find a file that nothing explains. The exchange that began the session
      // is on disk before another one follows.
      do { try directory.synchronize() } catch {
        state.failure = error.asFailure
        throw .poisoned(cause: error.asFailure)
      }
      state.isSettled = true
      next.retiredIDs.removeAll { state.unlinkedIDs.contains($0) }
    }
    change(&next)
    next.generation &+= 1
    next.lastSequence = lastSequence ?? log.lastSequence
    next.lastTime = session.clock.now()
    next.bootIdentifier = bootIdentifier
    return next
  }
}
