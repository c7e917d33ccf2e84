/// Opens a store while another process writes to it, without taking the store's lock or changing
/// files. The page FOLLOW announces the end of the log.
extension OpenedStore {
  /// The shared state of all views of a followed store.
  struct Followed: Sendable {
    let directory: Directory
    /// The file LOCK. Its bytes get a shared lock if there is no page.
    let lockFile: File
    let page: FollowPage?
    /// Whether files may be mapped because no process truncates them.
    let mapsFiles: Bool
    let storeIdentifier: [UInt8]
    let bootIdentifier: [UInt8]
    let clock: StoreClock

    /// Inspects the store at a path.
    init(
      path: String, configuration: StoreConfiguration, fileSystem: any FileSystem,
      clock known: StoreClock? = nil
    ) throws(StoreError) {
      directory = try Directory(path: path, fileSystem: fileSystem, readOnly: true)
      let manifest = try Self.readManifest(in: directory)
      guard let lockFile = try directory.openFile(FileName.lock, mode: .readOnly) else {
        throw .withoutLock(path: path)
      }
      self.lockFile = lockFile
      storeIdentifier = manifest.storeIdentifier
      bootIdentifier = try fileSystem.currentBoot(path: path)
      page = try FollowPage.open(
        in: directory, storeIdentifier: storeIdentifier, bootIdentifier: bootIdentifier)
      // From here on, no process truncates a file. Without a page, nothing is mapped, so a
      // filesystem that lacks such locks is good enough.
      let isKept =
        if let page { try Self.keepsFiles(from: page.file) } else {
          (try? Self.keepsFiles(from: lockFile)) ?? false
        }
      mapsFiles =
        page != nil && isKept && configuration.mapsFiles && directory.mapsFiles
      clock = known ?? StoreClock(configuration.clock, lastRecorded: manifest.lastTime)
    }

    private static func readManifest(in directory: Directory) throws(StoreError) -> Manifest {
      var attempt = 0
      while true {
        attempt += 1
        do throws(StoreError) {
          return try ManifestFile(directory: directory).readBesideWriter()
        } catch {
          // The manifest may have been overwritten while it was being read.
          guard case .corrupt = error, attempt < 20 else { throw error }
          pause(for: .milliseconds(1))
        }
      }
    }

    /// Keeps other processes from truncating files for as long as this file is open. Returns
    /// `false` if another process keeps truncating.
    private static func keepsFiles(from file: File) throws(StoreError) -> Bool {
      for _ in 0..<50 {
        if try file.lockBytes(exclusively: false) { return true }
        pause(for: .milliseconds(2))
      }
      return false
    }
  }

  /// Opens the current store for following.
  ///
  /// - Parameters:
  ///   - words: the page's words, loaded after the manifest was read, or `nil` if no writer
  ///     announces the end of the log.
  init(
    _ followed: Followed, _ manifest: Manifest, _ words: FollowPage.Words?,
    configuration: StoreConfiguration, environment: Environment
  ) throws(StoreError) {
    // A writer that announces nothing may not know that files are mapped here.
    let usesMappings = followed.mapsFiles && words != nil
    self.init(
      followed, manifest, usesMappings: usesMappings, keepsFiles: true, environment: environment)
    self.followed = words?.position
    followedCapacity = followed.page?.segmentByteLimit ?? 0
    try recover(
      segmentByteLimit: configuration.segmentByteLimit, names: nil, log: configuration.log)
    checkpointSource = nil
  }

  /// A store without entries. It replaces a followed store when no contents are needed.
  init(_ followed: Followed, environment: Environment) {
    let manifest = Manifest(
      storeIdentifier: followed.storeIdentifier,
      hashSecret: [UInt8](repeating: 0, count: 16), bootIdentifier: followed.bootIdentifier)
    self.init(
      followed, manifest, usesMappings: false, keepsFiles: false, environment: environment)
  }

  private init(
    _ followed: Followed, _ manifest: Manifest, usesMappings: Bool, keepsFiles: Bool,
    environment: Environment
  ) {
    isReadOnly = true
    reservesBlocks = false
    directory = followed.directory
    lockFile = followed.lockFile
    page = nil
    background = environment.background
    bootIdentifier = followed.bootIdentifier
    clock = followed.clock
    self.manifest = manifest
    hash = SipHash(secret: manifest.hashSecret)
    let table = SegmentTable()
    let recency = RecencyClock(now: clock.now(), exactCount: clock.isSystem ? 256 : .max)
    index = HashIndex(recency: recency, memory: environment.memory)
    // Segments keep this file open, and thus the lock that protects their files.
    files = SegmentFiles(
      directory: directory, lockFile: keepsFiles ? followed.page?.file ?? lockFile : nil,
      storeIdentifier: manifest.storeIdentifier, usesMappings: usesMappings,
      reservesBlocks: false, table: table, keepsFilesOpen: true)
    recovery.source = .scan
    recovery.wasClean = manifest.isClean
    recovery.clockWentBack = clock.wentBack
    recovery.clockLag = clock.lag < .seconds(1) ? .zero : clock.lag
  }

  /// Opens the segments that may still grow, up to the announced end of the log.
  mutating func openFollowedSegments(through position: LogPosition) throws(StoreError) {
    // If the position is in no open segment, its segment has been sealed or removed, and nothing
    // has been appended since.
    guard let last = manifest.openSegments.firstIndex(where: { position.lies(in: $0.id) }) else {
      try checkUnwritten(manifest.openSegments[...])
      return
    }
    try checkUnwritten(manifest.openSegments[(last + 1)...])
    for (index, entry) in manifest.openSegments[0...last].enumerated() {
      let end = index == last ? position.end : try rolledEnd(of: entry)
      if end <= SegmentHeader.byteCount { continue }
      try open(
        id: entry.id, salt: entry.salt, end: end,
        capacity: index == last ? capacityOfFollowed(entry.id, end: end) : nil)
    }
  }

  /// Throws if the manifest says that something was written to one of these segments.
  private func checkUnwritten(
    _ entries: ArraySlice<Manifest.OpenSegment>
  ) throws(StoreError) {
    for entry in entries where entry.byteCount > SegmentHeader.byteCount {
      throw .corrupt(
        Corruption(
          file: FileName.segment(entry.id), offset: SegmentHeader.byteCount, cause: .lostRecords))
    }
  }

  /// The end of a rolled segment.
  private func rolledEnd(of entry: Manifest.OpenSegment) throws(StoreError) -> Int {
    let (file, header, byteCount) = try files.check(id: entry.id, salt: entry.salt, readOnly: true)
    var scanner = SegmentScanner(file: file, header: header, end: byteCount)
    var offset = places[entry.id]?.end ?? SegmentHeader.byteCount
    while let record = try scanner.header(at: offset) {
      offset += record.byteCount
      if record.kind == .roll { return offset }
    }
    // A segment that was full when the store was closed needs no roll record.
    if offset == entry.byteCount { return offset }
    throw .corrupt(Corruption(file: file.name, offset: offset, cause: .lostRecords))
  }

  /// The address space to reserve for a segment that the followed writer may append to, or `nil`
  /// for its current size.
  func capacityOfFollowed(_ id: SegmentID, end: Int) -> Int? {
    guard followed != nil else { return nil }
    // Not more than the segment's granules in the checkpoint.
    return places[id]?.capacity ?? max(followedCapacity, end)
  }

  // MARK: Announcing

  /// The page of a store open for writing. Without a page, followers cannot see changes as they
  /// happen.
  static func openPage(
    _ directory: Directory, _ manifest: Manifest, _ bootIdentifier: [UInt8], announces: Bool
  ) -> (page: FollowPage, before: FollowPage.Words?)? {
    guard announces, directory.mapsFiles else { return nil }
    return try? FollowPage.openForWriting(
      in: directory, storeIdentifier: manifest.storeIdentifier, bootIdentifier: bootIdentifier)
  }

  /// Announces a loss if a recovery has discarded announced data.
  ///
  /// - Parameters:
  ///   - before: the last announcement.
  ///   - opened: the manifest that was found.
  func tellOfLoss(
    after before: FollowPage.Words?, _ opened: Manifest
  ) throws(StoreError) {
    guard let before, isLost(before, opened) else { return }
    if let page {
      page.beginSession()
    } else if let withdrawnPage {
      try FollowPage.beginSession(in: withdrawnPage, after: before)
    }
  }

  /// Whether a recovery has discarded announced data.
  private func isLost(_ before: FollowPage.Words, _ opened: Manifest) -> Bool {
    // After a failed sync, the manifest itself may have gone back.
    if !before.isWithdrawn, before.generation > opened.generation { return true }
    guard !opened.isClean,
      let last = opened.openSegments.firstIndex(where: { before.position.lies(in: $0.id) })
    else { return false }
    let end = ends[opened.openSegments[last].id] ?? SegmentHeader.byteCount
    return end < before.position.end || cutIndex ?? last < last
  }

  /// Announces the end of the log when this process begins its session.
  ///
  /// - Parameters:
  ///   - before: the last announcement.
  ///   - opened: the manifest that was found.
  func announce(
    after before: FollowPage.Words?, _ opened: Manifest, _ segmentByteLimit: Int
  ) throws(StoreError) {
    guard let page else { return }
    // Announce a loss again, because a follower may have opened the store since.
    try tellOfLoss(after: before, opened)
    page.publish(segmentByteLimit: segmentByteLimit)
    let last = manifest.openSegments.last { $0.byteCount > SegmentHeader.byteCount }
    if let resumable {
      page.publish(LogPosition(id: resumable.id, end: ends[resumable.id] ?? resumable.usage.end))
    } else if let last {
      page.publish(LogPosition(id: last.id, end: last.byteCount))
    }
    page.publish(generation: manifest.generation)
    // A position in no segment means that nothing was appended. If the manifest has gone back, a
    // later segment may get the number of the segment that contains the old position.
    if resumable == nil, last == nil { page.publish(LogPosition(rawValue: 0)) }
  }
}
