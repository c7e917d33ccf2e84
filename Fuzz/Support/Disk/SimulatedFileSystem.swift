package import CairnStore
import Foundation
internal import Synchronization

/// What one simulated process sees of a simulated disk: the other side of the seam. Descriptors,
/// locks and mappings belong to the process and end with it.
///
/// Used by one thread at a time.
package final class SimulatedFileSystem: FileSystem, @unchecked Sendable {
  // SAFETY: Sendable because a simulation runs on one thread. A read of another simulation in this
  // process may free objects late. So `close` and `unmap` only record what ends, under a lock, and
  // calls take turns: the last reader of a cut segment shortens its file.

  package enum Call: String, CaseIterable, Sendable {
    case makeDirectory, openDirectory, names, rename, exchange, unlink, volume, open, status, lock,
      lockBytes, read
    case write, copy, allocate, truncate, synchronizeData, synchronize, dropCache, map, protect
    case bootIdentifier, randomBytes
    /// A write into a mapping: not a call, but a moment at which something can happen.
    case mappedWrite
  }

  /// What happens instead of a call.
  package enum Intervention {
    /// The call fails without an effect, except a sync: any part of its data reaches the disk.
    case fail(Int32)
    /// A read or write transfers at most this many bytes.
    case transferAtMost(Int)
    /// A read or write transfers half of the bytes, but at least one.
    case transferHalf
    /// The process dies before the call, or during a write. The first pages of the write may then
    /// have arrived, or any words of a write into a mapping.
    case die
  }

  package let disk: SimulatedDisk
  /// Called before each system call, and after each write into a mapping.
  package var intervene: ((Call) -> Intervention?)?
  /// Whether other processes see only some words of a write into a mapping. They read while
  /// `intervene` runs for that write.
  package var showsPartialWrites = false
  package internal(set) var callCount = 0
  package internal(set) var isDead = false
  var random: FuzzRandom
  private var files: [Int32: SimulatedFile] = [:]
  /// The names by which files and directories were opened.
  private var paths: [Int32: String] = [:]
  /// The subject of the last call: an open file, and a name in it or a path.
  private var place: (descriptor: Int32?, name: String) = (nil, "")
  var mappings: [UInt: (file: SimulatedFile, count: Int)] = [:]
  /// The mappings that the process had when it died. Later writes into them are undone.
  var formerMappings: [UInt: SimulatedFile] = [:]

  /// Descriptors and mappings that ended since the last call.
  private let released = Mutex<[Released]>([])

  enum Released: Sendable {
    case descriptor(Int32)
    case mapping(UInt)
  }

  package init(disk: SimulatedDisk, seed: UInt64) {
    self.disk = disk
    random = FuzzRandom(seed: seed)
  }

  /// Ends the process: calls no longer have an effect, locks are released, and the page cache
  /// stays.
  package func kill() {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    takeReleased()
    if isDead { return }
    isDead = true
    for (descriptor, file) in files { release(file, descriptor) }
    for (file, count) in mappings.values { file.mappingCount -= count }
    formerMappings = mappings.mapValues(\.file)
    mappings = [:]
  }

  /// Descriptors and mappings that are open when none should be. A read elsewhere in the process
  /// may briefly delay a close.
  package var leftCount: Int {
    for _ in 0..<5000 {
      let count = disk.calls.withLock { () -> Int in
        takeReleased()
        return files.count + mappings.count
      }
      if count == 0 { return 0 }
      Reclamation.reclaim()
      pause(for: .milliseconds(1))
    }
    return files.count + mappings.count
  }

  func note(_ released: Released) { self.released.withLock { $0.append(released) } }

  private func takeReleased() {
    let all = released.withLock { released in
      defer { released.removeAll() }
      return released
    }
    for part in all {
      switch part {
      case .descriptor(let descriptor):
        guard let file = files.removeValue(forKey: descriptor) else { continue }
        paths[descriptor] = nil
        if !isDead { release(file, descriptor) }
      case .mapping(let address): removeMapping(address)
      }
    }
  }

  // MARK: The machinery

  /// What happens instead of a call that holds `SimulatedDisk.calls`. Meanwhile, other simulated
  /// processes may make calls, even on other threads.
  func interruption(of call: Call) -> Intervention? {
    disk.calls.unlock()
    defer { disk.calls.lock() }
    return intervene?(call)
  }

  func announce(
    _ call: Call, _ descriptor: Int32? = nil, _ name: String = ""
  ) throws(SystemError) -> Int {
    takeReleased()
    place = (descriptor, name)
    if isDead { throw SystemError(call: call.rawValue, errorNumber: SystemError.inputOutput) }
    callCount += 1
    switch interruption(of: call) {
    case nil: return .max
    case .transferAtMost(let count): return count
    case .transferHalf: return Self.half
    case .fail(let number): throw SystemError(call: call.rawValue, errorNumber: number)
    case .die:
      kill()
      throw SystemError(call: call.rawValue, errorNumber: SystemError.inputOutput)
    }
  }

  /// The path of the last call's file, or `nil` if it was for none.
  package var currentPath: String? {
    guard let descriptor = place.descriptor else { return place.name.isEmpty ? nil : place.name }
    return paths[descriptor].map { Self.join($0, place.name) }
  }

  private static func join(_ path: String, _ name: String) -> String {
    name.isEmpty ? path : path == "/" ? path + name : path + "/" + name
  }

  /// A special limit: half of what is requested.
  private static let half = -1

  private static func transferCount(_ count: Int, limit: Int) -> Int {
    limit == half ? min(count, max(1, count / 2)) : min(count, limit)
  }

  func file(_ descriptor: Int32, _ call: Call) throws(SystemError) -> SimulatedFile {
    guard let file = files[descriptor] else {
      throw SystemError(call: call.rawValue, errorNumber: 9)  // EBADF
    }
    return file
  }

  private func fail(_ call: Call, _ number: Int32) -> SystemError {
    SystemError(call: call.rawValue, errorNumber: number)
  }

  /// A descriptor for the file of the call in progress.
  private func descriptor(for file: SimulatedFile) -> Int32 {
    defer { disk.nextDescriptor += 1 }
    paths[disk.nextDescriptor] = currentPath
    files[disk.nextDescriptor] = file
    file.descriptorCount += 1
    return disk.nextDescriptor
  }

  private func release(_ file: SimulatedFile, _ descriptor: Int32) {
    file.descriptorCount -= 1
    file.holders.remove(descriptor)
    file.byteHolders.remove(descriptor)
  }

  private func checkSpace(_ additional: Int, _ call: Call) throws(SystemError) {
    guard let capacity = disk.capacity, additional > 0 else { return }
    if disk.allocatedByteCount + additional > capacity { throw fail(call, SystemError.noSpace) }
  }

  // MARK: Directories

  private func resolve(_ path: String, _ call: Call) throws(SystemError) -> SimulatedFile {
    var trail: [SimulatedFile] = [disk.root]
    for component in path.split(separator: "/") {
      if component == ".." {
        if trail.count > 1 { trail.removeLast() }
        continue
      }
      guard let next = trail[trail.count - 1].names[String(component)] else {
        throw fail(call, SystemError.noEntry)
      }
      guard next.isDirectory else { throw fail(call, SystemError.notADirectory) }
      trail.append(next)
    }
    return trail[trail.count - 1]
  }

  package func makeDirectory(path: String) throws(SystemError) {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.makeDirectory, nil, path)
    let components = path.split(separator: "/")
    guard let name = components.last else { throw fail(.makeDirectory, SystemError.exists) }
    let parent = try resolve(components.dropLast().joined(separator: "/"), .makeDirectory)
    try make(String(name), in: parent)
  }

  package func makeDirectory(_ name: String, in directory: Int32) throws(SystemError) {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.makeDirectory, directory, name)
    try make(name, in: try file(directory, .makeDirectory))
  }

  private func make(_ name: String, in parent: SimulatedFile) throws(SystemError) {
    if parent.names[name] != nil { throw fail(.makeDirectory, SystemError.exists) }
    let new = SimulatedFile(isDirectory: true, sectorByteCount: disk.sectorByteCount)
    disk.change([(parent, name, new)])
  }

  package func openDirectory(path: String) throws(SystemError) -> Int32 {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.openDirectory, nil, path)
    return descriptor(for: try resolve(path, .openDirectory))
  }

  package func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32 {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.openDirectory, directory, name)
    guard let found = try file(directory, .openDirectory).names[name] else {
      throw fail(.openDirectory, SystemError.noEntry)
    }
    guard found.isDirectory else { throw fail(.openDirectory, SystemError.notADirectory) }
    return descriptor(for: found)
  }

  package func names(in directory: Int32) throws(SystemError) -> [String] {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.names, directory)
    return try file(directory, .names).names.keys.sorted()
  }

  package func rename(
    _ name: String, in source: Int32, to newName: String, in target: Int32
  ) throws(SystemError) {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.rename, source, name)
    let from = try file(source, .rename)
    let to = try file(target, .rename)
    guard let found = from.names[name] else { throw fail(.rename, SystemError.noEntry) }
    if let old = to.names[newName], old !== found { disk.bury(old) }
    disk.change([(from, name, nil), (to, newName, found)])
  }

  package func exchange(
    _ name: String, with other: String, in directory: Int32
  ) throws(SystemError) {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.exchange, directory, name)
    let parent = try file(directory, .exchange)
    if !disk.exchanges { throw fail(.exchange, SystemError.invalidArgument) }
    guard let first = parent.names[name], let second = parent.names[other] else {
      throw fail(.exchange, SystemError.noEntry)
    }
    disk.change([(parent, name, second), (parent, other, first)])
  }

  package func unlink(_ name: String, in directory: Int32) throws(SystemError) {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.unlink, directory, name)
    let parent = try file(directory, .unlink)
    guard let found = parent.names[name] else { throw fail(.unlink, SystemError.noEntry) }
    disk.bury(found)
    disk.change([(parent, name, nil)])
  }

  package func volume(of directory: Int32) throws(SystemError) -> VolumeStatus {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.volume, directory)
    return VolumeStatus(unsupportedName: nil, mapsFiles: disk.reservesBlocks)
  }

  package func freeByteCount(of directory: Int32) throws(SystemError) -> Int {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.volume, directory)
    return disk.freeByteCount ?? .max
  }

  // MARK: Files

  package func open(
    _ name: String, in directory: Int32, mode: OpenMode
  ) throws(SystemError) -> Int32 {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.open, directory, name)
    let parent = try file(directory, .open)
    if let found = parent.names[name] {
      if mode == .createNew { throw fail(.open, SystemError.exists) }
      return descriptor(for: found)
    }
    guard mode == .createNew || mode == .createIfMissing else {
      throw fail(.open, SystemError.noEntry)
    }
    let new = SimulatedFile(isDirectory: false, sectorByteCount: disk.sectorByteCount)
    disk.change([(parent, name, new)])
    return descriptor(for: new)
  }

  package func close(_ descriptor: Int32) { note(.descriptor(descriptor)) }

  package func status(of descriptor: Int32) throws(SystemError) -> FileStatus {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.status, descriptor)
    let file = try file(descriptor, .status)
    return FileStatus(
      kind: file.isDirectory ? .directory : .regular, byteCount: file.byteCount,
      allocatedByteCount: file.allocatedByteCount, owner: 0, linkCount: 1)
  }

  /// No other process removes the files of a simulated store.
  package func linkCount(of descriptor: Int32) -> Int { 1 }

  package func lock(_ descriptor: Int32, exclusively: Bool) throws(SystemError) -> Bool {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.lock, descriptor)
    let file = try file(descriptor, .lock)
    return file.holders.take(descriptor, exclusively: exclusively)
  }

  package func unlock(_ descriptor: Int32) {
    if let file = files[descriptor], !isDead { file.holders.remove(descriptor) }
  }

  package func lockBytes(_ descriptor: Int32, exclusively: Bool?) throws(SystemError) -> Bool {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.lockBytes, descriptor)
    let file = try file(descriptor, .lockBytes)
    guard let exclusively else {
      file.byteHolders.remove(descriptor)
      return true
    }
    return file.byteHolders.take(descriptor, exclusively: exclusively)
  }

  package func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    let limit = try announce(.read, descriptor)
    // SAFETY: a prefix of the caller's buffer.
    let part = unsafe UnsafeMutableRawBufferPointer(
      rebasing: buffer.prefix(Self.transferCount(buffer.count, limit: limit)))
    let file = try file(descriptor, .read)
    if let unreadable = file.unreadable, unreadable.overlaps(offset..<(offset + part.count)) {
      throw fail(.read, SystemError.inputOutput)
    }
    return unsafe file.read(into: part, at: offset)
  }

  package func write(
    _ descriptor: Int32, from buffer: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    let wasDead = isDead
    let limit: Int
    do throws(SystemError) { limit = try announce(.write, descriptor) } catch {
      if isDead && !wasDead { unsafe writeSomePages(descriptor, from: buffer, at: offset) }
      throw error
    }
    let file = try file(descriptor, .write)
    // SAFETY: a prefix of the caller's buffer.
    let part = unsafe UnsafeRawBufferPointer(
      rebasing: buffer.prefix(Self.transferCount(buffer.count, limit: limit)))
    try checkSpace(((offset + part.count + 4095) & ~4095) - file.allocatedByteCount, .write)
    unsafe file.write(part, at: offset)
    return part.count
  }

  /// What a kill leaves of a write: the kernel checks for signals between pages.
  private func writeSomePages(
    _ descriptor: Int32, from buffer: UnsafeRawBufferPointer, at offset: Int
  ) {
    guard disk.capacity == nil, let file = files[descriptor] else { return }
    let pageCount = (offset + buffer.count) / 4096 - offset / 4096
    let end = (offset / 4096 + random.below(pageCount + 1)) * 4096
    if end <= offset { return }
    // SAFETY: a prefix of the caller's buffer.
    unsafe file.write(UnsafeRawBufferPointer(rebasing: buffer.prefix(end - offset)), at: offset)
  }

  package func copy(
    _ source: Int32, to target: Int32, at offset: Int, byteCount: Int
  ) throws(SystemError) -> Int {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    let limit = try announce(.copy, target)
    let from = try file(source, .copy)
    let to = try file(target, .copy)
    if !disk.exchanges { throw fail(.copy, SystemError.otherDevice) }
    let available = max(0, min(byteCount, from.byteCount - offset))
    let count = Self.transferCount(available, limit: limit)
    try checkSpace(((offset + count + 4095) & ~4095) - to.allocatedByteCount, .copy)
    var bytes = [UInt8](repeating: 0, count: count)
    unsafe bytes.withUnsafeMutableBytes { buffer in
      let read = unsafe from.read(into: buffer, at: offset)
      unsafe to.write(UnsafeRawBufferPointer(rebasing: buffer.prefix(read)), at: offset)
    }
    return count
  }

  package func allocate(
    _ descriptor: Int32, from offset: Int, byteCount: Int
  ) throws(SystemError) {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.allocate, descriptor)
    let file = try file(descriptor, .allocate)
    if !disk.reservesBlocks { throw fail(.allocate, SystemError.notSupported) }
    let end = offset + byteCount
    try checkSpace(((end + 4095) & ~4095) - file.allocatedByteCount, .allocate)
    file.allocate(to: end)
  }

  package func reservesBlocks(_ descriptor: Int32) -> Bool { disk.reservesBlocks }

  package func truncate(_ descriptor: Int32, to byteCount: Int) throws(SystemError) {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.truncate, descriptor)
    try file(descriptor, .truncate).truncate(to: byteCount)
  }

  package func synchronizeData(_ descriptor: Int32) throws(SystemError) {
    try synchronize(descriptor, .synchronizeData)
  }

  package func synchronize(_ descriptor: Int32) throws(SystemError) {
    try synchronize(descriptor, .synchronize)
  }

  private func synchronize(_ descriptor: Int32, _ call: Call) throws(SystemError) {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    let mark = files[descriptor]?.syncMark
    do throws(SystemError) { _ = try announce(call, descriptor) } catch {
      // Any part of the data may have arrived before the error.
      if !isDead, let file = files[descriptor], !file.isDirectory {
        file.failSync { random.below($0) }
      }
      throw error
    }
    let file = try file(descriptor, call)
    if file.isDirectory { disk.synchronize(file) } else if let mark { file.synchronize(mark) }
  }

  package func dropCache(_ descriptor: Int32) throws(SystemError) {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.dropCache, descriptor)
    try file(descriptor, .dropCache).dropCache()
  }

  // MARK: The process and the machine

  package func bootIdentifier() throws(SystemError) -> [UInt8] {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.bootIdentifier, nil, "/proc/sys/kernel/random/boot_id")
    return disk.bootIdentifier
  }

  package func randomBytes(count: Int) throws(SystemError) -> [UInt8] {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    _ = try announce(.randomBytes)
    return random.bytes(count: count)
  }

  package func fileSizeLimit() -> Int { .max }
  package func userIdentifier() -> UInt32 { 0 }
}
