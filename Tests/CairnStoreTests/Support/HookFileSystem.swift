import CairnStore
import Glibc
import Synchronization

/// The real file system with a hook before the calls that change or read something: it can fail a
/// call, look at the disk at that moment, or hold the calling thread up. It also plays a full disk.
final class HookFileSystem: FileSystem {
  enum Call: Sendable {
    case openDirectory, rename, exchange, unlink, open, read, write, allocate, truncate
    case reservesBlocks
    case synchronizeData, synchronize, unmapPages
  }

  /// A call that is about to be made.
  struct Event: Sendable {
    var call: Call
    /// The name of the file, or the path of the directory.
    var file: String
    /// How much is to be allocated.
    var byteCount = 0
  }

  /// Returns the number of the error to fail the call with.
  typealias Hook = @Sendable (Event) -> Int32?

  private struct State {
    var hook: Hook?
    /// What the full disk has left, or `nil` where it is not full.
    var freeByteCount: Int?
    var names: [Int32: String] = [:]
    var readByteCount = 0
  }

  private let system = SystemFileSystem()
  private let state = Mutex(State())

  /// How many bytes were read by calls.
  var readByteCount: Int { state.withLock { $0.readByteCount } }
  /// How many descriptors are open.
  var openDescriptorCount: Int { state.withLock { $0.names.count } }

  func setHook(_ hook: Hook?) { state.withLock { $0.hook = hook } }

  /// From now on only blocks that the file has already, or that were given back since, can be
  /// allocated, and so many bytes more.
  func fillDisk(leaving byteCount: Int = 0) { state.withLock { $0.freeByteCount = byteCount } }

  private func announce(
    _ call: Call, _ file: String, byteCount: Int = 0
  ) throws(SystemError) {
    guard let hook = state.withLock({ $0.hook }) else { return }
    if let number = hook(Event(call: call, file: file, byteCount: byteCount)) {
      let isAllocation = call == .allocate || call == .reservesBlocks
      throw SystemError(call: isAllocation ? "fallocate" : "\(call)", errorNumber: number)
    }
  }

  private func announce(
    _ call: Call, _ descriptor: Int32, byteCount: Int = 0
  ) throws(SystemError) {
    try announce(call, state.withLock { $0.names[descriptor] } ?? "", byteCount: byteCount)
  }

  private func giveBack(_ byteCount: Int) {
    state.withLock { $0.freeByteCount? += max(0, byteCount) }
  }

  private func allocatedByteCount(of name: String, in directory: Int32) -> Int {
    guard let file = try? system.open(name, in: directory, mode: .readOnly) else { return 0 }
    defer { system.close(file) }
    return (try? system.status(of: file))?.allocatedByteCount ?? 0
  }

  private func opened(_ descriptor: Int32, _ name: String) -> Int32 {
    state.withLock { $0.names[descriptor] = name }
    return descriptor
  }

  // MARK: FileSystem

  func makeDirectory(path: String) throws(SystemError) { try system.makeDirectory(path: path) }

  func makeDirectory(_ name: String, in directory: Int32) throws(SystemError) {
    try system.makeDirectory(name, in: directory)
  }

  func openDirectory(path: String) throws(SystemError) -> Int32 {
    try announce(.openDirectory, path)
    return opened(try system.openDirectory(path: path), path)
  }

  func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32 {
    opened(try system.openDirectory(name, in: directory), name)
  }

  func names(in directory: Int32) throws(SystemError) -> [String] {
    try system.names(in: directory)
  }

  func rename(
    _ name: String, in source: Int32, to newName: String, in target: Int32
  ) throws(SystemError) {
    try announce(.rename, name)
    let freed = allocatedByteCount(of: newName, in: target)
    try system.rename(name, in: source, to: newName, in: target)
    giveBack(freed)
  }

  func exchange(_ name: String, with other: String, in directory: Int32) throws(SystemError) {
    try announce(.exchange, name)
    try system.exchange(name, with: other, in: directory)
  }

  func unlink(_ name: String, in directory: Int32) throws(SystemError) {
    try announce(.unlink, name)
    let freed = allocatedByteCount(of: name, in: directory)
    try system.unlink(name, in: directory)
    giveBack(freed)
  }

  func volume(of directory: Int32) throws(SystemError) -> VolumeStatus {
    try system.volume(of: directory)
  }

  func freeByteCount(of directory: Int32) throws(SystemError) -> Int {
    try system.freeByteCount(of: directory)
  }

  func open(_ name: String, in directory: Int32, mode: OpenMode) throws(SystemError) -> Int32 {
    try announce(.open, name)
    return opened(try system.open(name, in: directory, mode: mode), name)
  }

  func close(_ descriptor: Int32) {
    state.withLock { $0.names[descriptor] = nil }
    system.close(descriptor)
  }

  func status(of descriptor: Int32) throws(SystemError) -> FileStatus {
    try system.status(of: descriptor)
  }

  func linkCount(of descriptor: Int32) throws(SystemError) -> Int {
    try system.linkCount(of: descriptor)
  }

  func lock(_ descriptor: Int32, exclusively: Bool) throws(SystemError) -> Bool {
    try system.lock(descriptor, exclusively: exclusively)
  }

  func unlock(_ descriptor: Int32) { system.unlock(descriptor) }

  func lockBytes(_ descriptor: Int32, exclusively: Bool?) throws(SystemError) -> Bool {
    try system.lockBytes(descriptor, exclusively: exclusively)
  }

  func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    try announce(.read, descriptor)
    // SAFETY: the caller's buffer, handed on.
    let count = unsafe try system.read(descriptor, into: buffer, at: offset)
    state.withLock { $0.readByteCount += count }
    return count
  }

  func write(
    _ descriptor: Int32, from buffer: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    try announce(.write, descriptor)
    // SAFETY: as for `read`.
    return unsafe try system.write(descriptor, from: buffer, at: offset)
  }

  func allocate(_ descriptor: Int32, from offset: Int, byteCount: Int) throws(SystemError) {
    try announce(.allocate, descriptor, byteCount: byteCount)
    // Files of a store are allocated from their beginning, so their size in blocks tells.
    let missing = try offset + byteCount - system.status(of: descriptor).allocatedByteCount
    let isPossible = state.withLock { state in
      guard let free = state.freeByteCount, missing > 0 else { return true }
      if free >= missing { state.freeByteCount = free - missing }
      return free >= missing
    }
    if !isPossible { throw SystemError(call: "fallocate", errorNumber: ENOSPC) }
    try system.allocate(descriptor, from: offset, byteCount: byteCount)
  }

  func reservesBlocks(_ descriptor: Int32) throws(SystemError) -> Bool {
    try announce(.reservesBlocks, descriptor)
    return try system.reservesBlocks(descriptor)
  }

  func truncate(_ descriptor: Int32, to byteCount: Int) throws(SystemError) {
    try announce(.truncate, descriptor)
    let before = try system.status(of: descriptor).allocatedByteCount
    try system.truncate(descriptor, to: byteCount)
    giveBack(before - (try system.status(of: descriptor).allocatedByteCount))
  }

  func synchronizeData(_ descriptor: Int32) throws(SystemError) {
    try announce(.synchronizeData, descriptor)
    try system.synchronizeData(descriptor)
  }

  func synchronize(_ descriptor: Int32) throws(SystemError) {
    try announce(.synchronize, descriptor)
    try system.synchronize(descriptor)
  }

  func copy(
    _ source: Int32, to target: Int32, at offset: Int, byteCount: Int
  ) throws(SystemError) -> Int {
    try system.copy(source, to: target, at: offset, byteCount: byteCount)
  }

  func dropCache(_ descriptor: Int32) throws(SystemError) { try system.dropCache(descriptor) }

  func map(
    _ descriptor: Int32, byteCount: Int, writable: Bool
  ) throws(SystemError) -> UnsafeMutableRawPointer {
    unsafe try system.map(descriptor, byteCount: byteCount, writable: writable)
  }

  func unmap(_ address: UnsafeMutableRawPointer, byteCount: Int) {
    unsafe system.unmap(address, byteCount: byteCount)
  }

  func protect(_ address: UnsafeMutableRawPointer, byteCount: Int) throws(SystemError) {
    unsafe try system.protect(address, byteCount: byteCount)
  }

  func prefault(_ address: UnsafeMutableRawPointer, byteCount: Int) {
    unsafe system.prefault(address, byteCount: byteCount)
  }

  func unmapPages(_ address: UnsafeMutableRawPointer, byteCount: Int) {
    try? announce(.unmapPages, "")
    unsafe system.unmapPages(address, byteCount: byteCount)
  }

  var mappedWriteObserver: (any MappedWriteObserver)? { nil }
  func bootIdentifier() throws(SystemError) -> [UInt8] { try system.bootIdentifier() }
  func randomBytes(count: Int) throws(SystemError) -> [UInt8] {
    try system.randomBytes(count: count)
  }
  func fileSizeLimit() -> Int { system.fileSizeLimit() }
  func userIdentifier() -> UInt32 { system.userIdentifier() }
}
