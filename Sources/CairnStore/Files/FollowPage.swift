/// The page in which a store open for writing announces the end of its log to followers: one file
/// for the life of the store, never renamed or truncated.
///
/// 1. `position` is stored once the bytes before it are in the page cache: a record, or a whole
///    batch.
/// 2. `generation` is stored once the manifest of that generation is in place, and before a
///    position in a segment that no earlier manifest lists.
/// 3. `session` changes when something published no longer exists.
///
/// Nothing here is valid after a reboot, so nothing is synced. The format is in
/// Docs/FileFormat/Following.md.
package final class FollowPage: Sendable {
  private typealias Layout = FollowPageLayout

  /// The page's words at one time.
  package struct Words: Sendable, Hashable {
    package var position = LogPosition(rawValue: 0)
    package var generation: UInt64 = 0
    package var session: UInt64 = 0
    /// Whether the last writer announces nothing.
    package var isWithdrawn: Bool { generation == .max }

    package init() {}

    /// The words in the bytes of a page.
    fileprivate init(in bytes: RawSpan) {
      position = LogPosition(rawValue: bytes.load(UInt64.self, at: Layout.positionOffset))
      generation = bytes.load(UInt64.self, at: Layout.generationOffset)
      session = bytes.load(UInt64.self, at: Layout.sessionOffset)
    }
  }

  private let page: SharedPage

  private init(_ page: SharedPage) { self.page = page }

  package var file: File { page.file }

  // MARK: The writer

  /// Opens the page of a store that this process has locked, or creates it.
  ///
  /// - Returns: the page, and its previous words, if they are of this store and this boot.
  package static func openForWriting(
    in directory: Directory, storeIdentifier: [UInt8], bootIdentifier: [UInt8]
  ) throws(StoreError) -> (page: FollowPage, before: Words?) {
    let name = FileName.followPage
    let file: File
    if let known = try directory.openFile(name, mode: .readWrite) {
      file = known
    } else {
      file = try directory.createFile(name)
    }
    if try file.status().byteCount < SharedPage.byteCount {
      try file.allocate(from: 0, to: SharedPage.byteCount, orExtend: false)
    }
    let head = Layout.head(storeIdentifier: storeIdentifier, bootIdentifier: bootIdentifier)
    let page = FollowPage(try SharedPage(file, writable: true))
    if try page.readHead() == head { return (page, page.words) }
    // Until the head is complete, readers find no page.
    let nothing = [UInt8](repeating: 0, count: Layout.headByteCount)
    try file.write(nothing.rawSpan, at: 0)
    page.page.store(0, at: Layout.positionOffset)
    page.page.store(0, at: Layout.generationOffset)
    page.page.store(try directory.randomNumbers(count: 1)[0] | 1, at: Layout.sessionOffset)
    try file.write(head.rawSpan, at: 0)
    return (page, nil)
  }

  /// Stops announcements in a page left by an earlier writer. If the manifest has gone back since
  /// its last announcement, begins a session first, because the page no longer shows that
  /// afterwards.
  ///
  /// - Parameter generation: the manifest's.
  /// - Returns: the file, on which followers hold locks, and its previous words, if they are of
  ///   this store and this boot.
  package static func withdraw(
    in directory: Directory, storeIdentifier: [UInt8], bootIdentifier: [UInt8],
    generation: UInt64
  ) throws(StoreError) -> (file: File, before: Words?)? {
    guard let file = try directory.openFile(FileName.followPage, mode: .readWrite) else {
      return nil
    }
    if try file.status().byteCount < SharedPage.byteCount { return (file, nil) }
    var bytes = [UInt8](repeating: 0, count: SharedPage.byteCount)
    _ = try file.read(into: &bytes, at: 0)
    let head = Layout.head(storeIdentifier: storeIdentifier, bootIdentifier: bootIdentifier)
    let before: Words? = bytes.starts(with: head) ? Words(in: bytes.rawSpan) : nil
    if let before, !before.isWithdrawn, before.generation > generation {
      try beginSession(in: file, after: before)
    }
    try write(.max, at: Layout.generationOffset, to: file)
    return (file, before)
  }

  /// Announces in a withdrawn page that something published no longer exists.
  package static func beginSession(
    in file: File, after before: Words
  ) throws(StoreError) {
    try write(before.session &+ 1, at: Layout.sessionOffset, to: file)
  }

  /// Writes a word by a system call, because a write to the mapped page on a full disk may raise
  /// SIGBUS.
  private static func write(_ word: UInt64, at offset: Int, to file: File) throws(StoreError) {
    var bytes: [UInt8] = []
    bytes.append(littleEndian: word)
    try file.write(bytes.rawSpan, at: offset)
  }

  /// Announces the end of the log.
  @inline(__always)
  package func publish(_ position: LogPosition) {
    page.store(position.rawValue, at: Layout.positionOffset)
  }

  /// Announces the current manifest.
  package func publish(generation: UInt64) { page.store(generation, at: Layout.generationOffset) }

  /// Announces that something published no longer exists.
  package func beginSession() {
    page.store(page.load(Layout.sessionOffset) &+ 1, at: Layout.sessionOffset)
  }

  /// Announces the maximum size of segments, except those for one large write.
  package func publish(segmentByteLimit: Int) {
    page.store(UInt64(segmentByteLimit), at: Layout.capacityOffset)
  }

  // MARK: Followers

  /// Opens the page of a store. Returns `nil` if the store has none for this boot.
  package static func open(
    in directory: Directory, storeIdentifier: [UInt8], bootIdentifier: [UInt8]
  ) throws(StoreError) -> FollowPage? {
    guard let file = try directory.openFile(FileName.followPage, mode: .readOnly),
      try file.status().byteCount >= SharedPage.byteCount
    else { return nil }
    let page = FollowPage(try SharedPage(file, writable: false))
    let head = Layout.head(storeIdentifier: storeIdentifier, bootIdentifier: bootIdentifier)
    return try page.readHead() == head ? page : nil
  }

  /// The end of the log. Words loaded afterwards are at least as new.
  @inline(__always)
  package var position: LogPosition { LogPosition(rawValue: page.load(Layout.positionOffset)) }
  @inline(__always)
  package var generation: UInt64 { page.load(Layout.generationOffset) }
  @inline(__always)
  package var session: UInt64 { page.load(Layout.sessionOffset) }

  /// The maximum size of segments, if known.
  package var segmentByteLimit: Int {
    // The file may contain anything.
    min(Int(clamping: page.load(Layout.capacityOffset)), 1 << 30)
  }

  /// All words; the position is loaded first.
  package var words: Words {
    var words = Words()
    words.position = position
    words.generation = generation
    words.session = session
    return words
  }

  // MARK: The head

  private func readHead() throws(StoreError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Layout.headByteCount)
    let count = try file.read(into: &bytes, at: 0)
    return Array(bytes.prefix(count))
  }
}
