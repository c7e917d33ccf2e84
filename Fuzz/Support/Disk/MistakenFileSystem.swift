import CairnLibC
package import CairnStore

/// A mistake in the calls that make things durable: a call that is omitted, repeated or made in
/// another order. `Fuzz/Mutations/Files` says why somebody might make each mistake.
package enum FileMistake: String, CaseIterable, Sendable {
  // Omitted calls.
  case noDataSync, noManifestSync, noDirectorySync, noParentSync, checkpointNotSynced
  case noSyncAtRecovery
  // Repeated calls.
  case failedSyncRetried
  // Reordered calls.
  case manifestUnlinkedFirst, manifestSyncedLate, directorySyncedFirst
  case directorySyncedAfterUnlinks

  /// The mistake that `CAIRN_FILE_MISTAKE` names, if any.
  package static let chosen: FileMistake? = unsafe getenv("CAIRN_FILE_MISTAKE").map {
    let name = unsafe String(cString: $0)
    guard let mistake = FileMistake(rawValue: name) else { fatalError("no mistake \(name)") }
    return mistake
  }
}

/// A file system whose caller makes one mistake.
///
/// Used by one thread at a time, like the simulated one below it.
package final class MistakenFileSystem: FileSystemDecorator, MappedWriteObserver,
  @unchecked Sendable
{
  // SAFETY: Sendable because a simulation runs on one thread. Nothing here is locked.

  package let base: any FileSystem
  private let mistake: FileMistake
  /// The names of files, and the paths of directories, that are open.
  private var names: [Int32: String] = [:]
  private var directories: Set<Int32> = []
  /// The names of files that were written, and those that are mapped at an address.
  private var written: Set<String> = []
  private var mappings: [UInt: String] = [:]
  /// A manifest whose sync is postponed. It stays open until then.
  private var lateManifest: Int32?
  /// A directory whose sync is postponed.
  private var lateDirectory: Int32?
  /// A directory whose next sync was made too early.
  private var earlyDirectory: Int32?

  package init(_ base: any FileSystem, mistake: FileMistake) {
    self.base = base
    self.mistake = mistake
  }

  package func openDirectory(path: String) throws(SystemError) -> Int32 {
    let descriptor = try base.openDirectory(path: path)
    names[descriptor] = path
    directories.insert(descriptor)
    return descriptor
  }

  package func open(
    _ name: String, in directory: Int32, mode: OpenMode
  ) throws(SystemError) -> Int32 {
    let descriptor = try base.open(name, in: directory, mode: mode)
    names[descriptor] = name
    return descriptor
  }

  package func close(_ descriptor: Int32) {
    names[descriptor] = nil
    directories.remove(descriptor)
    if descriptor == lateDirectory { lateDirectory = nil }
    if descriptor == earlyDirectory { earlyDirectory = nil }
    if descriptor != lateManifest { base.close(descriptor) }
  }

  package func write(
    _ descriptor: Int32, from buffer: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    try syncLateDirectory()
    written.insert(names[descriptor] ?? "")
    return try unsafe base.write(descriptor, from: buffer, at: offset)
  }

  package func synchronizeData(_ descriptor: Int32) throws(SystemError) {
    try syncLateDirectory()
    switch mistake {
    case .noDataSync: return
    case .noSyncAtRecovery where !written.contains(names[descriptor] ?? ""): return
    case .failedSyncRetried:
      do throws(SystemError) { try base.synchronizeData(descriptor) } catch {
        try base.synchronizeData(descriptor)
      }
    default: try base.synchronizeData(descriptor)
    }
  }

  package func synchronize(_ descriptor: Int32) throws(SystemError) {
    try syncLateDirectory()
    let name = names[descriptor] ?? ""
    let isParent = name.hasSuffix("/..")
    let isStore = directories.contains(descriptor) && !isParent
    switch mistake {
    case .noManifestSync where name == FileName.newManifest: return
    case .noDirectorySync where isStore: return
    case .noParentSync where isParent: return
    case .checkpointNotSynced where name.hasPrefix("ckpt-"): return
    case .manifestSyncedLate where name == FileName.newManifest: lateManifest = descriptor
    case .directorySyncedAfterUnlinks where isStore: lateDirectory = descriptor
    case .directorySyncedFirst where descriptor == earlyDirectory: earlyDirectory = nil
    default: try base.synchronize(descriptor)
    }
  }

  package func rename(
    _ name: String, in source: Int32, to newName: String, in target: Int32
  ) throws(SystemError) {
    try syncLateDirectory()
    try syncEarly(name, in: source)
    try base.rename(name, in: source, to: newName, in: target)
    try syncLateManifest(name)
  }

  package func exchange(
    _ name: String, with other: String, in directory: Int32
  ) throws(SystemError) {
    try syncLateDirectory()
    try syncEarly(name, in: directory)
    switch mistake {
    case .manifestUnlinkedFirst where name == FileName.newManifest:
      try base.unlink(other, in: directory)
      try base.rename(name, in: directory, to: other, in: directory)
    default: try base.exchange(name, with: other, in: directory)
    }
    try syncLateManifest(name)
  }

  // MARK: Mappings

  package var mappedWriteObserver: (any MappedWriteObserver)? {
    base.mappedWriteObserver == nil ? nil : self
  }

  package func map(
    _ descriptor: Int32, byteCount: Int, writable: Bool
  ) throws(SystemError) -> UnsafeMutableRawPointer {
    let address = unsafe try base.map(descriptor, byteCount: byteCount, writable: writable)
    mappings[UInt(bitPattern: address)] = names[descriptor]
    return unsafe address
  }

  package func didWrite(mapping: UInt, offset: Int, byteCount: Int) {
    written.insert(mappings[mapping] ?? "")
    base.mappedWriteObserver?.didWrite(mapping: mapping, offset: offset, byteCount: byteCount)
  }

  // MARK: Order

  private func syncEarly(_ name: String, in directory: Int32) throws(SystemError) {
    guard mistake == .directorySyncedFirst, name == FileName.newManifest else { return }
    try base.synchronize(directory)
    earlyDirectory = directory
  }

  private func syncLateManifest(_ name: String) throws(SystemError) {
    guard let descriptor = lateManifest, name == FileName.newManifest else { return }
    lateManifest = nil
    defer { base.close(descriptor) }
    try base.synchronize(descriptor)
  }

  private func syncLateDirectory() throws(SystemError) {
    guard let descriptor = lateDirectory else { return }
    lateDirectory = nil
    try base.synchronize(descriptor)
  }
}
