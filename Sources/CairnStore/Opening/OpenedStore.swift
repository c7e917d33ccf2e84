/// A store that has been locked, checked and replayed: the input for an engine.
struct OpenedStore {
  let isReadOnly: Bool
  /// Whether writes to allocated blocks never run out of space.
  let reservesBlocks: Bool
  let directory: Directory
  let lockFile: File
  /// Announces writes to followers, if enabled.
  let page: FollowPage?
  /// The file of an earlier writer's page, if this one announces nothing.
  private(set) var withdrawnPage: File?
  let files: SegmentFiles
  let index: HashIndex
  let hash: SipHash
  let clock: StoreClock
  let bootIdentifier: [UInt8]
  /// Delivers messages that arise under a lock.
  let background: any BackgroundQueue
  var manifest: Manifest
  /// All segments, in the order of the log.
  var segments: [Segment] = []
  /// The segment that can be appended to after a clean close.
  var resumable: Segment?
  /// The manifest that begins the session, if it is ready.
  var next: Manifest?
  var nextSequence: SequenceNumber = 1
  var recovery = RecoveryReport()
  /// The end of each segment's records.
  var ends: [SegmentID: Int] = [:]
  /// The records of segments that were read before they were opened.
  var collected: [SegmentID: CollectedRecords] = [:]
  /// Segments whose files are longer than their records.
  var overlong: [Segment] = []
  /// The checkpoint that the index was loaded from, if the index was not built from the whole log.
  var checkpoint: Checkpoint?
  var checkpointSource: CheckpointSource?
  /// The entries to evict first if a limit is set, provided that the checkpoint has them.
  var oldest: [RemovalCandidate] = []
  /// What the checkpoint that is being loaded says about each segment.
  var places: [SegmentID: Checkpoint.CoveredSegment] = [:]
  var replayedSequence: SequenceNumber = 0
  /// Bytes of records that the checkpoint does not cover.
  var replayedByteCount = 0
  /// Records with damaged heads that were replaced by a later record with the same hash.
  var replacedDamage: [Corruption] = []
  /// Whether the page cache may show data that is not on disk, or may have lost data.
  var hasLostPages = false
  /// Empty segments to remove.
  var emptySegments: [SegmentID] = []
  /// The last announcement to followers before the open.
  var announcedBefore: FollowPage.Words?
  /// Whether a segment that the manifest lists as open has no file. Nothing was written to it, or a
  /// later manifest does not list it.
  var lacksSegment = false
  /// The index, among the manifest's open segments, of the one where the log was cut.
  var cutIndex: Int?
  /// The end of the log, for a store that is followed while another process writes to it.
  var followed: LogPosition?
  /// The maximum size of the followed store's segments.
  var followedCapacity = 0
  /// The highest sequence number in a discarded part of the log. It is not reused.
  var discardedSequence: SequenceNumber = 0

  /// Opens or creates the store at a path.
  ///
  /// A crash at any point leaves a store that the next open brings to the same state.
  init(
    path: String, configuration: StoreConfiguration, environment: Environment, readOnly: Bool
  ) throws(StoreError) {
    try configuration.check()
    let fileSystem = environment.fileSystem
    let mayCreate = configuration.createsStore && !readOnly
    if mayCreate { try Directory.create(path: path, fileSystem: fileSystem) }
    directory = try Directory(
      path: path, fileSystem: fileSystem, readOnly: readOnly,
      byteLimit: configuration.diskByteLimit)
    isReadOnly = readOnly
    background = environment.background
    // Check before taking the lock, so that no lock file is created in a foreign directory. Check
    // again under the lock, when no other process changes names.
    let unlockedNames = try directory.names()
    if !unlockedNames.contains(FileName.lock) {
      try Self.check(unlockedNames, of: directory, configuration, mayCreate: mayCreate)
    }
    let lock = try Self.lock(
      directory, readOnly: readOnly, waiting: configuration.lockTimeout, pause: environment.pause)
    lockFile = lock
    // A process that is being spawned may hold the descriptor too, so unlock the file before
    // closing it.
    var isOpen = false
    defer { if !isOpen { lock.unlock() } }
    let names = try directory.names()
    try Self.check(names, of: directory, configuration, mayCreate: mayCreate)
    reservesBlocks =
      readOnly ? false : try Self.reservesBlocks(lock, mapsFiles: configuration.mapsFiles)

    bootIdentifier = try fileSystem.currentBoot(path: path)
    let file = ManifestFile(directory: directory)
    if let found = try file.read() {
      manifest = found
      recovery.source = .scan
    } else {
      guard mayCreate else { throw .noStore(path: path) }
      // A cache whose directory was removed while it was open may have left these. They keep no
      // other cache from taking the place.
      recovery.quarantinedFiles = names.filter { FileName.identifier(in: $0) != nil }
      if !recovery.quarantinedFiles.isEmpty {
        try directory.move(recovery.quarantinedFiles, intoFolder: FileName.quarantine)
      }
      // DURABILITY: without this sync, a power cut could take the directory with everything
      // acknowledged in it. If there is a manifest, the directory has been synced.
      try Directory.synchronizeParent(of: path, fileSystem: fileSystem)
      manifest = try Self.newManifest(
        of: directory, bootIdentifier: bootIdentifier, now: configuration.clock.now())
      // DURABILITY: the manifest exists before the first segment. So segments without a manifest
      // indicate a loss.
      try file.synchronize(try file.prepare(manifest))
      try file.installFirst()
      file.reserve(manifest)
      recovery.source = .created
    }
    clock = StoreClock(configuration.clock, lastRecorded: manifest.lastTime)
    recovery.clockWentBack = clock.wentBack
    recovery.clockLag = clock.lag < .seconds(1) ? .zero : clock.lag
    recovery.wasClean = manifest.isClean
    hash = SipHash(secret: manifest.hashSecret)
    let announced = Self.openPage(
      directory, manifest, bootIdentifier,
      announces: environment.announces && reservesBlocks && configuration.mapsFiles)
    page = announced?.page
    announcedBefore = announced?.before
    if page == nil, !readOnly, names.contains(FileName.followPage) {
      let withdrawn = try FollowPage.withdraw(
        in: directory, storeIdentifier: manifest.storeIdentifier, bootIdentifier: bootIdentifier,
        generation: manifest.generation)
      withdrawnPage = withdrawn?.file
      announcedBefore = withdrawn?.before
    }
    let table = SegmentTable()
    // A custom clock stands still between its steps, however many entries are read.
    let recency = RecencyClock(now: clock.now(), exactCount: clock.isSystem ? 256 : .max)
    index = HashIndex(recency: recency, memory: environment.memory)
    files = SegmentFiles(
      directory: directory, lockFile: lock, pageFile: page?.file ?? withdrawnPage,
      storeIdentifier: manifest.storeIdentifier,
      usesMappings: configuration.mapsFiles && directory.mapsFiles,
      reservesBlocks: reservesBlocks, table: table)
    let openedManifest = manifest
    try recover(
      segmentByteLimit: configuration.segmentByteLimit, names: Set(names),
      log: configuration.log)
    let limits = WriteLimits(configuration)
    if !readOnly,
      EvictionStart(limits)
        .isReached(count: index.count, live: table.total.liveByteCount, limits)
    {
      oldest = checkpointSource?.oldest() ?? []
    }
    // The index releases the source once the shards are loaded.
    checkpointSource = nil
    if !readOnly {
      // If the disk has no room for this manifest, the first write waits for a sync.
      next =
        file.readNext(after: manifest, in: bootIdentifier)
        ?? (try? file.makeReady(after: &manifest, in: bootIdentifier, at: clock.now()))
      manifest.nextID = max(manifest.nextID, next?.nextID ?? 0)
    }
    try announce(after: announced?.before, openedManifest, configuration.segmentByteLimit)
    report(to: configuration.log)
    isOpen = true
  }

  /// Refuses a directory with other contents before writing anything into it.
  private static func check(
    _ names: [String], of directory: Directory, _ configuration: StoreConfiguration,
    mayCreate: Bool
  ) throws(StoreError) {
    if names.contains(FileName.manifest) { return }
    let isCopy = names.contains(FileName.unfinishedCopy)
    let isCache = configuration.isOfCache && mayCreate && !isCopy
    if !isCache, isCopy || names.contains(where: { FileName.identifier(in: $0) != nil }) {
      // Never create a store over data.
      throw .corrupt(.ofMissingManifest(among: names))
    }
    let spare = FileName.beforeManifest + [FileName.lostAndFound]
    let other = names.first { !spare.contains($0) && FileName.identifier(in: $0) == nil }
    if let other {
      throw .notAStore(path: directory.path, reason: "it holds \"\(shown(other))\" and no MANIFEST")
    }
    if !mayCreate { throw .noStore(path: directory.path) }
  }

  /// Takes the store's lock. Waits until another opener releases it, up to `timeout`.
  private static func lock(
    _ directory: Directory, readOnly: Bool, waiting timeout: Duration,
    pause: (Duration) -> Void
  ) throws(StoreError) -> File {
    var rest = timeout
    while true {
      do throws(StoreError) { return try lock(directory, readOnly: readOnly) } catch {
        guard case .locked = error, rest > .zero else { throw error }
      }
      let step = min(rest, .milliseconds(5))
      pause(step)
      rest -= step
    }
  }

  private static func lock(
    _ directory: Directory, readOnly: Bool
  ) throws(StoreError) -> File {
    let mode: OpenMode = readOnly ? .readOnly : .createIfMissing
    guard let file = try directory.openFile(FileName.lock, mode: mode) else {
      throw .withoutLock(path: directory.path)
    }
    try file.lockStore(at: directory.path, exclusively: !readOnly)
    // A failed salvage removes the file while it holds the lock. A process that had opened the file
    // before would hold a useless lock.
    let isNamed: Bool
    do throws(StoreError) { isNamed = try file.status().linkCount == 1 } catch {
      file.unlock()
      throw error
    }
    guard isNamed else {
      file.unlock()
      throw .locked(path: directory.path)
    }
    return file
  }

  /// Whether writes to allocated blocks of files next to this one never run out of space.
  ///
  /// - Throws: `unsupportedFileSystem` if files are mapped but no blocks can be allocated.
  private static func reservesBlocks(
    _ lock: File, mapsFiles: Bool
  ) throws(StoreError) -> Bool {
    do { return try lock.reservesBlocks() } catch {
      guard case .unsupportedFileSystem(_, let name) = error else { throw error }
      if !mapsFiles { return false }
      throw .unsupportedFileSystem(path: lock.directoryPath, name: name)
    }
  }

  private static func newManifest(
    of directory: Directory, bootIdentifier: [UInt8], now: Timestamp
  ) throws(StoreError) -> Manifest {
    let fileSystem = directory.fileSystem
    do {
      var manifest = Manifest(
        storeIdentifier: try fileSystem.randomBytes(count: 16),
        hashSecret: try fileSystem.randomBytes(count: 16), bootIdentifier: bootIdentifier)
      manifest.lastTime = now
      return manifest
    } catch {
      throw error.storeError(path: "\(directory.path)/\(FileName.manifest)")
    }
  }

  /// Removes the files of unfinished work, and moves unexplained files to quarantine.
  mutating func sweep() throws(StoreError) {
    // DURABILITY: the previous process may have died between the exchange of the manifests and the
    // sync of the directory. Nothing relies on the manifest before it is durably in place.
    try ManifestFile(directory: directory).settle()
    let listed = manifest.listedFiles
    let deletable = Set(manifest.pendingIDs + manifest.retiredIDs)
    var hasChanged = false
    var strays: [String] = []
    for name in try directory.names() {
      guard let id = FileName.identifier(in: name), !listed.contains(name) else { continue }
      if id >= manifest.nextID || deletable.contains(id) {
        // DURABILITY: if a crash undoes the removal, the next open repeats it.
        do { try directory.unlink(name) } catch
          where error.asFailure.errorNumber == SystemError.isADirectory
        {
          // The name belongs to a directory, so the store did not create it.
          strays.append(name)
        }
      } else {
        strays.append(name)
      }
      hasChanged = true
    }
    if !strays.isEmpty { try directory.move(strays, intoFolder: FileName.quarantine) }
    recovery.quarantinedFiles += strays
    // DURABILITY: the changes are on disk before a manifest drops the ids.
    if hasChanged { try directory.synchronize() }
    manifest.pendingIDs = []
  }

  private func report(to log: DiagnosticLog) {
    func tell(
      _ level: DiagnosticLog.Level, _ category: DiagnosticLog.Category,
      _ text: @autoclosure () -> String
    ) { log(level, category, path: directory.path, text()) }
    /// The first ones, and how many others there are: there may be thousands.
    func tellOfEach(
      _ level: DiagnosticLog.Level, _ category: DiagnosticLog.Category, _ texts: [String]
    ) {
      for text in texts.prefix(10) { tell(level, category, text) }
      if texts.count > 10 { tell(level, category, "and so are \(texts.count - 10) others") }
    }
    tellOfEach(
      .warning, .recovery,
      recovery.quarantinedFiles.map {
        "\($0) is not in the manifest; moved to \(FileName.quarantine)/"
      })
    if recovery.tornByteCount > 0 {
      tell(
        .info, .recovery,
        "discarded \(recovery.tornByteCount) bytes of a write that a crash cut short")
    }
    tellOfEach(.error, .damage, recovery.damage.map { "\($0)" })
    tellOfEach(
      .warning, .damage, replacedDamage.map { "\($0); a later record took its place" })
    if recovery.clockWentBack {
      tell(.warning, .clock, "the clock is more than a day behind the store's last use")
    } else if recovery.clockLag > .zero {
      tell(
        .info, .clock,
        "the clock is \(recovery.clockLag.milliseconds / 1000) s behind the store's last use; lifetimes "
          + "go by the store's time")
    }
  }
}
