/// Opening a store beside whoever writes to it: nothing is locked, nothing is changed, and the page FOLLOW says how far the
/// log goes.
extension OpenedStore {
  /// Why a store cannot be followed just now.
  enum FollowingFailure: Error {
    /// The manifest is another than the page says: try again.
    case isChanging
    case store(StoreError)
  }

  /// What is the same for all views of a store that is followed.
  struct Followed: Sendable {
    let directory: Directory
    /// LOCK. It is never locked.
    let lockFile: File
    let page: FollowPage?
    /// Whether files may be mapped: nobody shortens them meanwhile.
    let mapsFiles: Bool
    let storeIdentifier: [UInt8]
    let bootIdentifier: [UInt8]
    let clock: StoreClock

    /// Looks at the store at a path.
    init(
      path: String, configuration: StoreConfiguration, fileSystem: any FileSystem,
      clock known: StoreClock? = nil
    ) throws(StoreError) {
      directory = try Directory(path: path, fileSystem: fileSystem, readOnly: true)
      let manifest = try Self.readManifest(in: directory)
      guard let lockFile = try directory.openFile(FileName.lock, mode: .readOnly) else {
        throw .notAStore(path: path, reason: "it has no file LOCK")
      }
      self.lockFile = lockFile
      storeIdentifier = manifest.storeIdentifier
      bootIdentifier = try OpenedStore.bootIdentifier(of: fileSystem)
      page = try FollowPage.open(
        in: directory, storeIdentifier: storeIdentifier, bootIdentifier: bootIdentifier)
      // From here on whoever would shorten a file leaves it.
      var isKept = false
      if let page { isKept = try Self.keepsFiles(from: page.file) }
      mapsFiles = isKept && configuration.access == .mapped && directory.mapsFiles
      clock = known ?? StoreClock(configuration.clock, lastRecorded: manifest.lastTime)
    }

    private static func readManifest(in directory: Directory) throws(StoreError) -> Manifest {
      var attempt = 0
      while true {
        attempt += 1
        do throws(StoreError) {
          return try ManifestFile(directory: directory).readBesideWriter()
        } catch {
          // It may have been overwritten while it was read.
          guard case .corrupt = error, attempt < 20 else { throw error }
          pause(for: .milliseconds(1))
        }
      }
    }

    /// Has nobody shorten a file as long as this one is open; `false` where somebody goes on doing so.
    private static func keepsFiles(from file: File) throws(StoreError) -> Bool {
      for _ in 0..<50 {
        if try file.lockBytes(exclusively: false) { return true }
        pause(for: .milliseconds(2))
      }
      return false
    }
  }

  /// Opens a store as it is now, for one who follows it.
  ///
  /// - Parameters:
  ///   - words: what the page said after the manifest was read; `nil`: nobody says how far the log goes.
  init(
    _ followed: Followed, _ manifest: Manifest, _ words: FollowPage.Words?,
    configuration: StoreConfiguration, environment: Environment
  ) throws(StoreError) {
    // Who announces nothing may not know that files are mapped here.
    let usesMappings = followed.mapsFiles && words != nil
    self.init(
      followed, manifest, usesMappings: usesMappings, keepsFiles: true, environment: environment)
    self.followed = words?.position
    followedCapacity = followed.page?.segmentByteLimit ?? 0
    try recover(
      segmentByteLimit: configuration.segmentByteLimit, precedingVersion: 0, log: configuration.log)
    checkpointSource = nil
  }

  /// A store without entries: what stands for one that is followed where nothing of it is asked for.
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
    index = HashIndex(recency: recency, memory: environment.memory) { known in
      table.segment(at: known.location)?.usage.killExtension(byteCount: known.byteCount)
    }
    // Segments keep the page's file open, and with it the lock that keeps their files as long as they are.
    files = SegmentFiles(
      directory: directory, lockFile: keepsFiles ? followed.page?.file : nil,
      storeIdentifier: manifest.storeIdentifier, usesMappings: usesMappings,
      reservesBlocks: false, table: table, keepsFilesOpen: true)
    recovery.source = .scan
    recovery.wasClean = manifest.isClean
    recovery.clockWentBack = clock.wentBack
    recovery.clockLag = clock.lag < .seconds(1) ? .zero : clock.lag
  }

  /// Opens the segments that may still grow, as far as the log is announced.
  mutating func openFollowedSegments(through position: LogPosition) throws(StoreError) {
    // Where it lies in none of them, it lies in a segment that was sealed, or is gone: nothing was appended since.
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

  /// Places that nothing was written to.
  private func checkUnwritten(
    _ entries: ArraySlice<Manifest.OpenSegment>
  ) throws(StoreError) {
    for entry in entries where entry.byteCount > SegmentHeader.byteCount {
      throw .corrupt(
        Corruption(
          file: FileName.segment(entry.id), offset: SegmentHeader.byteCount, cause: .lostRecords))
    }
  }

  /// Where a segment ends that was left for the next.
  private func rolledEnd(of entry: Manifest.OpenSegment) throws(StoreError) -> Int {
    let (file, header, byteCount) = try files.check(id: entry.id, salt: entry.salt, readOnly: true)
    var scanner = SegmentScanner(file: file, header: header, end: byteCount)
    var offset = places[entry.id]?.end ?? SegmentHeader.byteCount
    while let record = try scanner.header(at: offset) {
      offset += record.byteCount
      if record.kind == .roll { return offset }
    }
    throw .corrupt(Corruption(file: file.name, offset: offset, cause: .lostRecords))
  }

  /// How much address space a segment gets that whoever is followed may still append to; `nil`: as much as it has.
  func capacityOfFollowed(_ id: SegmentID, end: Int) -> Int? {
    guard followed != nil else { return nil }
    // No more than its place has room for.
    return places[id]?.capacity ?? max(followedCapacity, end)
  }

  // MARK: Announcing

  static func bootIdentifier(of fileSystem: any FileSystem) throws(StoreError) -> [UInt8] {
    do {
      let identifier = try fileSystem.bootIdentifier()
      return Array((identifier + [UInt8](repeating: 0, count: 16)).prefix(16))
    } catch {
      throw error.storeError(path: "/proc/sys/kernel/random/boot_id")
    }
  }

  /// The page of a store that is open for writing. Where there can be none, nobody can follow as it goes.
  static func openPage(
    _ directory: Directory, _ manifest: Manifest, _ bootIdentifier: [UInt8], announces: Bool
  ) -> (page: FollowPage, before: FollowPage.Words?)? {
    guard announces, directory.mapsFiles else { return nil }
    return try? FollowPage.openForWriting(
      in: directory, storeIdentifier: manifest.storeIdentifier, bootIdentifier: bootIdentifier)
  }

  /// Says that something is gone that was published, if a recovery has discarded it.
  ///
  /// - Parameters:
  ///   - before: what was said last.
  ///   - opened: the manifest that was found.
  func tellOfLoss(after before: FollowPage.Words?, _ opened: Manifest) {
    guard let page, let before, !opened.isClean,
      let last = opened.openSegments.firstIndex(where: { before.position.lies(in: $0.id) })
    else { return }
    let end = ends[opened.openSegments[last].id] ?? SegmentHeader.byteCount
    if end < before.position.end || cutIndex ?? last < last { page.beginSession() }
  }

  /// Says how far the log goes that this process begins with.
  ///
  /// - Parameters:
  ///   - before: what was said last.
  ///   - opened: the manifest that was found.
  func announce(
    after before: FollowPage.Words?, _ opened: Manifest, _ segmentByteLimit: Int
  ) {
    guard let page else { return }
    // Once more: a store may have been opened to be followed since.
    tellOfLoss(after: before, opened)
    page.publish(segmentByteLimit: segmentByteLimit)
    if let resumable {
      page.publish(LogPosition(id: resumable.id, end: ends[resumable.id] ?? resumable.usage.end))
    }
    page.publish(generation: manifest.generation)
  }
}
