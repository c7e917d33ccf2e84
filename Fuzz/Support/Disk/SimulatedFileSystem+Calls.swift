package import CairnStore
import Foundation

/// The calls of a simulated process.
extension SimulatedFileSystem {
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
    try calling(.makeDirectory, nil, path) { (_) throws(SystemError) in
      let components = path.split(separator: "/")
      guard let name = components.last else { throw fail(.makeDirectory, SystemError.exists) }
      let parent = try resolve(components.dropLast().joined(separator: "/"), .makeDirectory)
      try make(String(name), in: parent)
    }
  }

  package func makeDirectory(_ name: String, in directory: Int32) throws(SystemError) {
    try calling(.makeDirectory, directory, name) { (_) throws(SystemError) in
      try make(name, in: try file(directory, .makeDirectory))
    }
  }

  private func make(_ name: String, in parent: SimulatedFile) throws(SystemError) {
    if parent.names[name] != nil { throw fail(.makeDirectory, SystemError.exists) }
    let new = SimulatedFile(isDirectory: true, sectorByteCount: disk.sectorByteCount)
    disk.change([(parent, name, new)])
  }

  package func openDirectory(path: String) throws(SystemError) -> Int32 {
    try calling(.openDirectory, nil, path) { (_) throws(SystemError) in
      return descriptor(for: try resolve(path, .openDirectory))
    }
  }

  package func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32 {
    try calling(.openDirectory, directory, name) { (_) throws(SystemError) in
      guard let found = try file(directory, .openDirectory).names[name] else {
        throw fail(.openDirectory, SystemError.noEntry)
      }
      guard found.isDirectory else { throw fail(.openDirectory, SystemError.notADirectory) }
      return descriptor(for: found)
    }
  }

  package func names(in directory: Int32) throws(SystemError) -> [String] {
    try calling(.names, directory) { (_) throws(SystemError) in
      return try file(directory, .names).names.keys.sorted()
    }
  }

  package func rename(
    _ name: String, in source: Int32, to newName: String, in target: Int32
  ) throws(SystemError) {
    try calling(.rename, source, name) { (_) throws(SystemError) in
      let from = try file(source, .rename)
      let to = try file(target, .rename)
      guard let found = from.names[name] else { throw fail(.rename, SystemError.noEntry) }
      if let old = to.names[newName], old !== found { disk.bury(old) }
      disk.change([(from, name, nil), (to, newName, found)])
    }
  }

  package func exchange(
    _ name: String, with other: String, in directory: Int32
  ) throws(SystemError) {
    try calling(.exchange, directory, name) { (_) throws(SystemError) in
      let parent = try file(directory, .exchange)
      if !disk.exchanges { throw fail(.exchange, SystemError.invalidArgument) }
      guard let first = parent.names[name], let second = parent.names[other] else {
        throw fail(.exchange, SystemError.noEntry)
      }
      disk.change([(parent, name, second), (parent, other, first)])
    }
  }

  package func unlink(_ name: String, in directory: Int32) throws(SystemError) {
    try calling(.unlink, directory, name) { (_) throws(SystemError) in
      let parent = try file(directory, .unlink)
      guard let found = parent.names[name] else { throw fail(.unlink, SystemError.noEntry) }
      disk.bury(found)
      disk.change([(parent, name, nil)])
    }
  }

  package func volume(of directory: Int32) throws(SystemError) -> VolumeStatus {
    try calling(.volume, directory) { (_) throws(SystemError) in
      return VolumeStatus(unsupportedName: nil, mapsFiles: disk.reservesBlocks)
    }
  }

  package func freeByteCount(of directory: Int32) throws(SystemError) -> Int {
    try calling(.volume, directory) { (_) throws(SystemError) in
      return disk.freeByteCount ?? .max
    }
  }

  // MARK: Files

  package func open(
    _ name: String, in directory: Int32, mode: OpenMode
  ) throws(SystemError) -> Int32 {
    try calling(.open, directory, name) { (_) throws(SystemError) in
      let parent = try file(directory, .open)
      if let found = parent.names[name] {
        if mode == .createNew { throw fail(.open, SystemError.exists) }
        return descriptor(for: found)
      }
      guard mode == .createNew || mode == .createIfMissing else {
        throw fail(.open, SystemError.noEntry)
      }
      if let limit = disk.fileLimit, disk.fileCount >= limit {
        throw fail(.open, SystemError.noSpace)
      }
      let new = SimulatedFile(isDirectory: false, sectorByteCount: disk.sectorByteCount)
      disk.change([(parent, name, new)])
      return descriptor(for: new)
    }
  }

  package func close(_ descriptor: Int32) { note(.descriptor(descriptor)) }

  package func status(of descriptor: Int32) throws(SystemError) -> FileStatus {
    try calling(.status, descriptor) { (_) throws(SystemError) in
      status(of: try file(descriptor, .status))
    }
  }

  package func status(
    of name: String, in directory: Int32
  ) throws(SystemError) -> FileStatus {
    try calling(.status, directory) { (_) throws(SystemError) in
      guard let file = try file(directory, .status).names[name] else {
        throw fail(.status, SystemError.noEntry)
      }
      return status(of: file)
    }
  }

  /// Every file has one name: no other process removes the files of a simulated store.
  private func status(of file: SimulatedFile) -> FileStatus {
    FileStatus(
      kind: file.isDirectory ? .directory : .regular, byteCount: file.byteCount,
      allocatedByteCount: file.allocatedByteCount, owner: 0, linkCount: 1)
  }

  package func lock(_ descriptor: Int32, exclusively: Bool) throws(SystemError) -> Bool {
    try calling(.lock, descriptor) { (_) throws(SystemError) in
      let file = try file(descriptor, .lock)
      return file.holders.take(descriptor, exclusively: exclusively)
    }
  }

  package func unlock(_ descriptor: Int32) {
    if let file = files[descriptor], !isDead { file.holders.remove(descriptor) }
  }

  package func lockBytes(_ descriptor: Int32, exclusively: Bool?) throws(SystemError) -> Bool {
    try calling(.lockBytes, descriptor) { (_) throws(SystemError) in
      let file = try file(descriptor, .lockBytes)
      guard let exclusively else {
        file.byteHolders.remove(descriptor)
        return true
      }
      return file.byteHolders.take(descriptor, exclusively: exclusively)
    }
  }

  package func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    try calling(.read, descriptor) { (limit) throws(SystemError) in
      // SAFETY: a prefix of the caller's buffer.
      let part = unsafe UnsafeMutableRawBufferPointer(
        rebasing: buffer.prefix(Self.transferCount(buffer.count, limit: limit)))
      let file = try file(descriptor, .read)
      if let unreadable = file.unreadable, unreadable.overlaps(offset..<(offset + part.count)) {
        throw fail(.read, SystemError.inputOutput)
      }
      return unsafe file.read(into: part, at: offset)
    }
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
    let added = max(0, ((offset + part.count + 4095) & ~4095) - file.allocatedByteCount)
    let sharedCount = file.sharedPages(at: offset, count: part.count).count
    try checkSpace(added + 4096 * sharedCount, .write)
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
    try calling(.copy, target) { (limit) throws(SystemError) in
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
      for file in [from, to] { file.sharePages(of: offset..<(offset + count)) }
      return count
    }
  }

  package func allocate(
    _ descriptor: Int32, from offset: Int, byteCount: Int
  ) throws(SystemError) {
    try calling(.allocate, descriptor) { (_) throws(SystemError) in
      let file = try file(descriptor, .allocate)
      if !disk.reservesBlocks { throw fail(.allocate, SystemError.notSupported) }
      let end = offset + byteCount
      try checkSpace(((end + 4095) & ~4095) - file.allocatedByteCount, .allocate)
      file.allocate(to: end)
    }
  }

  package func reservesBlocks(_ descriptor: Int32) -> Bool { disk.reservesBlocks }

  package func truncate(_ descriptor: Int32, to byteCount: Int) throws(SystemError) {
    try calling(.truncate, descriptor) { (_) throws(SystemError) in
      try file(descriptor, .truncate).truncate(to: byteCount)
    }
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
    try calling(.dropCache, descriptor) { (_) throws(SystemError) in
      try file(descriptor, .dropCache).dropCache()
    }
  }

  package func nextData(_ descriptor: Int32, from offset: Int) -> Int { offset }

  // MARK: The process and the machine

  package func bootIdentifier() throws(SystemError) -> [UInt8] {
    try calling(.bootIdentifier, nil, "/proc/sys/kernel/random/boot_id") {
      (_) throws(SystemError) in
      return disk.bootIdentifier
    }
  }

  package func randomBytes(count: Int) throws(SystemError) -> [UInt8] {
    try calling(.randomBytes) { (_) throws(SystemError) in
      return random.bytes(count: count)
    }
  }

  package func fileSizeLimit() -> Int { .max }
  package func userIdentifier() -> UInt32 { 0 }
}
