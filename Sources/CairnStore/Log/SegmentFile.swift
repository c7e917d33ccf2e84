/// The file of a segment. It is open only while it needs a descriptor, because a store may have
/// more segments than a process may have descriptors.
///
/// 1. From before its first record until its last sync, the file stays open, and only this
///    descriptor syncs it: the kernel may not report an earlier failed write to a later descriptor.
/// 2. After that, the file is opened by name for reads by system calls, and closed again.
/// 3. A segment without a mapping is always read by system calls. Such segments share the few
///    descriptors of `OpenFiles`.
/// 4. A file stays open if its name is removed while a reader may need it, unless a mapping can be
///    read instead.
package final class SegmentFile: Sendable {
  package let name: String
  private let home: SegmentHome
  private let isReadOnly: Bool
  private let identity: FileIdentity?
  /// The descriptor of rule 1 or 4.
  private let kept: Lock<File?>

  /// - Parameter isKept: whether the file stays open until `release`.
  init(_ file: File, home: SegmentHome, readOnly: Bool, isKept: Bool) {
    name = file.name
    self.home = home
    isReadOnly = readOnly
    identity = file.identity
    kept = Lock(isKept ? file : nil)
  }

  deinit { home.openFiles.close(self) }

  package var directoryPath: String { home.directory.path }
  package var path: String { "\(directoryPath)/\(name)" }

  /// The file, which stays open while the result is held, or `nil` if its name has been removed.
  ///
  /// - Parameter isShared: whether to leave the file in `OpenFiles` afterwards.
  /// - Throws: `unsafeFile`; `system`, for example if the process has no descriptor left.
  func openIfNamed(isShared: Bool = false) throws(StoreError) -> File? {
    if let file = syncable { return file }
    let file = isShared ? try home.openFiles.file(of: self) : try openByName()
    // The name may have been removed since, and the file kept open before that.
    return file ?? syncable
  }

  /// The file, which stays open while the result is held.
  ///
  /// - Throws: `corrupt` if its name has been removed; see `openIfNamed`.
  package func open() throws(StoreError) -> File {
    guard let file = try openIfNamed() else { throw missing }
    return file
  }

  var missing: StoreError {
    .corrupt(Corruption(directory: directoryPath, file: name, offset: 0, cause: .missingFile))
  }

  fileprivate func openByName() throws(StoreError) -> File? {
    let mode = isReadOnly ? OpenMode.readOnly : .readWrite
    var file: File?
    do throws(StoreError) { file = try home.directory.openFile(name, mode: mode) } catch {
      // To make room, close files that are open only for the next read.
      guard case .system(let failure) = error,
        failure.errorNumber == SystemError.tooManyOpenFiles, home.openFiles.closeAll()
      else { throw error }
      file = try home.directory.openFile(name, mode: mode)
    }
    // Another file may now have the name.
    return file?.identity == identity ? file : nil
  }

  /// Keeps the file open until `release`, so that records can be written.
  ///
  /// - Parameter begin: writes what the next sync must cover besides the records.
  func keepForWriting(_ begin: (File) throws(StoreError) -> Void) throws(StoreError) {
    if syncable != nil { return }
    let file = try open()
    try begin(file)
    set(file)
  }

  /// The descriptor that stays open, and the only one that may sync the file; `nil` after
  /// `release`.
  var syncable: File? { kept.withLock { $0 } }

  /// Stops keeping the file open, after its last sync or once it has left the log.
  func release() { set(nil) }

  /// Keeps the file open. Call before its name is removed.
  func keep() throws(StoreError) { set(try openIfNamed(isShared: true)) }

  private func set(_ file: File?) {
    let old = kept.withLock { exchange(&$0, with: file) }
    // The old file is closed outside the lock.
    withExtendedLifetime(old) {}
  }

  /// Cuts the file to `byteCount`, unless a reader of an earlier session may read beyond that.
  func shorten(to byteCount: Int) {
    guard let file = try? openIfNamed() else { return }
    home.readers.withoutOthers { try? file.truncate(to: byteCount) }
  }
}

/// The shared state of a store's segment files.
package final class SegmentHome: Sendable {
  package let directory: Directory
  let openFiles = OpenFiles()
  let readers: EarlierReaders

  package init(directory: Directory, lockFile: File?, pageFile: File? = nil) {
    self.directory = directory
    readers = EarlierReaders(lockFile: lockFile, pageFile: pageFile)
  }
}

/// Files that stay open so that the next read by a system call need not open one. There are only a
/// few, whatever the number of segments. The least recently used is closed first.
final class OpenFiles: Sendable {
  private static let limit = 16

  private struct Opened {
    var owner: ObjectIdentifier
    var file: File
  }

  /// The most recently used last.
  private let opened = Lock<[Opened]>([])

  func file(of owner: SegmentFile) throws(StoreError) -> File? {
    let identifier = ObjectIdentifier(owner)
    let known = opened.withLock { opened -> File? in
      guard let index = opened.lastIndex(where: { $0.owner == identifier }) else { return nil }
      if index != opened.count - 1 { opened.append(opened.remove(at: index)) }
      return opened[opened.count - 1].file
    }
    if let known { return known }
    guard let file = try owner.openByName() else { return nil }
    let surplus = opened.withLock { opened -> File? in
      // Two threads may have opened the same file at the same time.
      if opened.contains(where: { $0.owner == identifier }) { return nil }
      opened.append(Opened(owner: identifier, file: file))
      return opened.count > Self.limit ? opened.removeFirst().file : nil
    }
    withExtendedLifetime(surplus) {}
    return file
  }

  /// Closes a segment's file, once no reader uses it.
  func close(_ owner: SegmentFile) {
    let identifier = ObjectIdentifier(owner)
    let file = opened.withLock { opened -> File? in
      let index = opened.firstIndex { $0.owner == identifier }
      return index.map { opened.remove(at: $0).file }
    }
    withExtendedLifetime(file) {}
  }

  /// Closes all files.
  ///
  /// - Returns: whether any were open.
  @discardableResult
  func closeAll() -> Bool {
    let files = opened.withLock { exchange(&$0, with: []) }
    return !files.isEmpty
  }
}

/// Readers that outlive their session, such as a snapshot whose store is closed. Memory beyond the
/// end of a file must not be touched, so no later session truncates a file that they may have
/// mapped.
///
/// They share a lock on the bytes of the file LOCK. Truncating a file needs that lock exclusively.
/// It is separate from the lock for opening a store, and is released with the last segment of the
/// session. One lock covers all segments, because one for each would take as many descriptors.
///
/// Processes that follow the store have mapped files too. They share a similar lock on the file
/// FOLLOW, and take it before they open the first segment.
final class EarlierReaders: Sendable {
  private let lockFile: File?
  /// The file FOLLOW, in a store that announces its writes.
  private let pageFile: File?
  /// Whether this object's session is over.
  private let isOver = Lock(false)

  init(lockFile: File?, pageFile: File?) {
    self.lockFile = lockFile
    self.pageFile = pageFile
  }

  /// Ends the session. From then on, its remaining readers count as earlier readers.
  func endSession() {
    isOver.withLock { isOver in
      isOver = true
      _ = try? lockFile?.lockBytes(exclusively: false)
    }
  }

  /// Runs `body` unless earlier readers exist or processes that follow the store may have mapped
  /// its files. Also does nothing if the session is over, because the file then belongs to the next
  /// session.
  func withoutOthers(_ body: () -> Void) {
    isOver.withLock { isOver in
      guard !isOver, let lockFile, (try? lockFile.lockBytes(exclusively: true)) == true else {
        return
      }
      defer { _ = try? lockFile.lockBytes(exclusively: nil) }
      withoutFollowers(body)
    }
  }

  /// Runs `body`, unless a process that follows the store may have mapped its files.
  func withoutFollowers(_ body: () -> Void) {
    guard let pageFile else { return body() }
    guard (try? pageFile.lockBytes(exclusively: true)) == true else { return }
    defer { _ = try? pageFile.lockBytes(exclusively: nil) }
    body()
  }
}
