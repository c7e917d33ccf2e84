internal import Synchronization

/// A followed store as one open found it, with the records appended since.
///
/// 1. While changes are being added, and after a change could not be added, the view is not whole,
///    and no read begins. So no read sees part of a batch that a later read misses.
/// 2. A view includes the log up to a published position. Its manifest was in place when that
///    position was loaded, or before.
///
/// Changed only under the locks of both `Follower` and the view's log.
final class FollowedView: Sendable {
  let engine: Engine
  let page: FollowPage?
  private let position: Atomic<UInt64>
  private let generation: Atomic<UInt64>
  let session: UInt64
  /// Whether the end of the log has been announced. If not, the view ends where its own search
  /// found the end.
  let isAnnounced: Bool
  private let whole = Atomic(true)
  private let historyNumber = Atomic<UInt64>(0)
  private let progress: Lock<FollowedProgress>

  private init(
    _ parts: OpenedStore, _ page: FollowPage?, _ words: FollowPage.Words, isAnnounced: Bool,
    configuration: StoreConfiguration, environment: Environment
  ) {
    self.page = page
    self.isAnnounced = isAnnounced
    position = Atomic(words.position.rawValue)
    generation = Atomic(words.generation)
    session = words.session
    progress = Lock(FollowedProgress(parts))
    engine = Engine(parts, configuration: configuration, environment: environment)
  }

  /// Opens the store as it is now.
  static func open(
    _ followed: OpenedStore.Followed, configuration: StoreConfiguration, environment: Environment
  ) throws(StoreError) -> FollowedView {
    var (attempt, growthCount) = (0, 0)
    while true {
      attempt += 1
      let isLast = attempt == attemptLimit
      let manifest: Manifest
      do throws(StoreError) { manifest = try readManifest(followed) } catch {
        // The manifest may have been overwritten while it was being read: its space is reused for
        // the manifest after the next.
        guard case .corrupt = error, !isLast else { throw error }
        environment.pause(pauseOfAttempt)
        continue
      }
      let words = followed.page?.words
      let isAnnounced = words?.generation == manifest.generation
      if let words, !isAnnounced, !words.isWithdrawn, attempt < attemptLimit / 2 {
        environment.pause(pauseOfAttempt)
        continue
      }
      // If the page keeps announcing something else, the process that installed the manifest has
      // died, or is of an earlier version and makes no announcements.
      do throws(StoreError) {
        let parts = try OpenedStore(
          followed, manifest, isAnnounced ? words : nil, configuration: configuration,
          environment: environment)
        let lacksCheckpoint = manifest.checkpointID != 0 && parts.checkpoint == nil
        if lacksCheckpoint, !isLast, followed.page?.generation != words?.generation { continue }
        if parts.lacksSegment, hasMoved(followed, since: manifest, words) {
          // The writer has since removed the file, and its content is in another file.
          if isLast { throw StoreError.outdated(path: followed.directory.path) }
          environment.pause(pauseOfAttempt)
          continue
        }
        return FollowedView(
          parts, followed.page, words ?? FollowPage.Words(), isAnnounced: isAnnounced,
          configuration: configuration, environment: environment)
      } catch {
        // Without a page, the end of the log must be searched for. Bytes appended in the meantime
        // look like a hole.
        var mayHaveGrown = false
        if case .corrupt = error, !isAnnounced, !manifest.isClean, growthCount < growthLimit {
          growthCount += 1
          mayHaveGrown = true
        }
        // Files are removed once a later manifest is in place.
        guard !isLast, mayHaveGrown || hasMoved(followed, since: manifest, words) else {
          throw error
        }
        environment.pause(pauseOfAttempt)
      }
    }
  }

  private static let attemptLimit = 200
  private static let growthLimit = 20
  private static let pauseOfAttempt = Duration.milliseconds(1)

  private static func readManifest(
    _ followed: OpenedStore.Followed
  ) throws(StoreError) -> Manifest {
    try ManifestFile(directory: followed.directory).readBesideWriter()
  }

  /// Whether the store has changed since its manifest was read.
  private static func hasMoved(
    _ followed: OpenedStore.Followed, since manifest: Manifest, _ words: FollowPage.Words?
  ) -> Bool {
    if let page = followed.page, page.words != words { return true }
    return (try? readManifest(followed))?.generation != manifest.generation
  }

  /// Releases the unreachable view once no read uses it. A read may have just found it, and a value
  /// read in place holds only its segment.
  func retire() {
    Reclamation.retire(self, keeping: self)
    for segment in engine.log.segments { Reclamation.retire(segment, keeping: segment) }
  }

  // MARK: Checks

  /// Whether reads may begin.
  @inline(__always)
  var isWhole: Bool { whole.load(ordering: .acquiring) }

  /// Whether the view includes everything published so far.
  ///
  /// SAFETY: a thread that sees the new position here has acquired the records before it. Without
  /// that, it could see the position while `goOn` runs or just after, and still read older entries.
  @inline(__always)
  var isCurrent: Bool {
    guard isWhole else { return false }
    guard let page else { return true }
    return page.position.rawValue == position.load(ordering: .acquiring)
      && page.generation == generation.load(ordering: .relaxed) && page.session == session
  }

  /// Counts events after which a version may belong to another value. Within one history, the same
  /// version means the same value. Set before reads find the view.
  var history: UInt64 {
    get { historyNumber.load(ordering: .relaxed) }
    set { historyNumber.store(newValue, ordering: .relaxed) }
  }

  var lastVersion: SequenceNumber { engine.log.lastSequence }
  var manifestGeneration: UInt64 { progress.withLock { $0.manifest.generation } }

  // MARK: Advancing

  /// Adds the records that were appended since the last advance.
  ///
  /// - Returns: `false` if the appended records alone do not suffice, and the store must be
  ///   reopened.
  /// - Throws: an error also means that the store must be reopened. The view is then not whole.
  func goOn(_ followed: OpenedStore.Followed) throws(StoreError) -> Bool {
    guard isWhole, isAnnounced, let page else { return false }
    return try progress.withLock { (progress) throws(StoreError) -> Bool in
      var manifest = progress.manifest
      var words = page.words
      for _ in 0..<5 where words.generation != manifest.generation {
        manifest = try Self.readManifest(followed)
        words = page.words
      }
      guard words.session == session, words.generation == manifest.generation,
        let tail = progress.tail(in: manifest, words.position)
      else { return false }
      whole.store(false, ordering: .sequentiallyConsistent)
      if manifest.generation != progress.manifest.generation { progress.forgetLengths() }
      let follower = LogFollower(writer: engine.writer)
      for part in tail { try follower.enter(part, in: &progress) }
      progress.manifest = manifest
      engine.catalog.withLock { $0.manifest = manifest }
      position.store(words.position.rawValue, ordering: .releasing)
      generation.store(words.generation, ordering: .relaxed)
      whole.store(true, ordering: .releasing)
      return true
    }
  }
}
