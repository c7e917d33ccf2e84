/// The file of a segment, open only while it needs a descriptor: a store may have more segments than a process
/// may have descriptors.
///
/// 1. From before its first record to its last sync the file stays open, and that descriptor alone syncs it: one
///    opened later need not be told of a write that failed before.
/// 2. After that it is opened by its name when bytes are read by calls, and closed again.
/// 3. A segment without a mapping is read by calls all the time. Such segments share the few descriptors of
///    `OpenFiles`.
/// 4. A file that loses its name while a reader may need it stays open, unless there is a mapping to read.
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

  /// The file, open for as long as the result is held; `nil` where it has lost its name.
  ///
  /// - Parameter isShared: whether to leave it among `OpenFiles`.
  /// - Throws: `unsafeFile`; `system`, also where the process has no descriptor left.
  func openIfNamed(isShared: Bool = false) throws(StoreError) -> File? {
    if let file = syncable { return file }
    let file = isShared ? try home.openFiles.file(of: self) : try openByName()
    // It may have lost its name since, and been kept open before it did.
    return file ?? syncable
  }

  /// The file, open for as long as the result is held.
  ///
  /// - Throws: `corrupt` where it has lost its name; as `openIfNamed`.
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
      // Files that are open only to be found so by the next read make room.
      guard case .system(let failure) = error,
        failure.errorNumber == SystemError.tooManyOpenFiles, home.openFiles.closeAll()
      else { throw error }
      file = try home.directory.openFile(name, mode: mode)
    }
    // Another file may have been given the name.
    return file?.identity == identity ? file : nil
  }

  /// Has the file stay open until `release`, so that records can be written.
  ///
  /// - Parameter begin: writes what the next sync is to answer for beside the records.
  func keepForWriting(_ begin: (File) throws(StoreError) -> Void) throws(StoreError) {
    if syncable != nil { return }
    let file = try open()
    try begin(file)
    set(file)
  }

  /// The descriptor that stays open, which alone may sync the file; `nil` after `release`.
  var syncable: File? { kept.withLock { $0 } }

  /// Ends the time in which the file stays open by itself: its last sync is over, or it is out of the log.
  func release() { set(nil) }

  /// Has the file stay open although it is to lose its name.
  func keep() throws(StoreError) { set(try openIfNamed(isShared: true)) }

  private func set(_ file: File?) {
    let old = kept.withLock { exchange(&$0, with: file) }
    // Closed out of the lock.
    withExtendedLifetime(old) {}
  }

  /// Makes the file end at `byteCount`, unless a reader of an earlier session may look behind that.
  ///
  /// - Returns: whether it is done. Where not, it can be tried again, and the next open does.
  func shorten(to byteCount: Int) -> Bool {
    guard let file = try? openIfNamed(), let status = try? file.status() else { return false }
    if status.byteCount <= byteCount { return true }
    return home.readers.withoutOthers { (try? file.truncate(to: byteCount)) != nil }
  }
}

/// What the files of a store's segments have in common.
package final class SegmentHome: Sendable {
  package let directory: Directory
  let openFiles = OpenFiles()
  let readers: EarlierReaders

  package init(directory: Directory, lockFile: File?, pageFile: File? = nil) {
    self.directory = directory
    readers = EarlierReaders(lockFile: lockFile, pageFile: pageFile)
  }
}

/// Files that stay open so that the next read by a call need not open one: a few, whatever the number of
/// segments; the least recently used is closed first.
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
      // Two threads may have opened one file at once.
      if opened.contains(where: { $0.owner == identifier }) { return nil }
      opened.append(Opened(owner: identifier, file: file))
      return opened.count > Self.limit ? opened.removeFirst().file : nil
    }
    withExtendedLifetime(surplus) {}
    return file
  }

  /// Closes the file of one, as soon as nobody reads from it.
  func close(_ owner: SegmentFile) {
    let identifier = ObjectIdentifier(owner)
    let file = opened.withLock { opened -> File? in
      let index = opened.firstIndex { $0.owner == identifier }
      return index.map { opened.remove(at: $0).file }
    }
    withExtendedLifetime(file) {}
  }

  /// Closes all.
  ///
  /// - Returns: whether there were any.
  @discardableResult
  func closeAll() -> Bool {
    let files = opened.withLock { exchange(&$0, with: []) }
    return !files.isEmpty
  }
}

/// Readers that outlive the session that they began in, as a snapshot does when its store is closed. Memory
/// beyond the end of a file must not be touched, so no later session shortens a file that they may have mapped.
///
/// They share a lock on the bytes of the file LOCK, and whoever shortens a file has that lock alone. It is not
/// the lock that a store is opened by, and it goes with the last segment of the session. One lock stands for all
/// segments: one for each would take as many descriptors.
///
/// Who follows the store has files mapped too, and shares such a lock on the file FOLLOW from before it opens the first.
final class EarlierReaders: Sendable {
  private let lockFile: File?
  /// FOLLOW, in a store that announces its writes.
  private let pageFile: File?
  /// Whether the session that this belongs to is over.
  private let isOver = Lock(false)

  init(lockFile: File?, pageFile: File?) {
    self.lockFile = lockFile
    self.pageFile = pageFile
  }

  /// The session ends: whoever still reads is an earlier reader for the next.
  func endSession() {
    isOver.withLock { isOver in
      isOver = true
      _ = try? lockFile?.lockBytes(exclusively: false)
    }
  }

  /// Runs `body` unless there are such readers, and returns what it does; `false` where there are, or where the
  /// session is over: then the file is the next session's.
  func withoutOthers(_ body: () -> Bool) -> Bool {
    isOver.withLock { isOver in
      guard !isOver, let lockFile, (try? lockFile.lockBytes(exclusively: true)) == true else {
        return false
      }
      defer { _ = try? lockFile.lockBytes(exclusively: nil) }
      return withoutFollowers(body)
    }
  }

  /// Runs `body` unless somebody follows the store who may have its files mapped, and returns what it does; `false` where
  /// somebody does.
  func withoutFollowers(_ body: () -> Bool) -> Bool {
    guard let pageFile else { return body() }
    guard (try? pageFile.lockBytes(exclusively: true)) == true else { return false }
    defer { _ = try? pageFile.lockBytes(exclusively: nil) }
    return body()
  }
}
