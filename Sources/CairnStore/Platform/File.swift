internal import Synchronization

/// An open file of a store. Owns its descriptor; the last reference closes it.
///
/// Every error includes the file's path.
package final class File: Sendable {
  package let fileSystem: any FileSystem
  package let descriptor: Int32
  package let name: String
  package let path: String
  /// The file's identity, if known.
  package let identity: FileIdentity?
  /// The quota of the file's directory.
  private let quota: DiskQuota?
  /// Whether the file is in `HeldLocks`. Few files are.
  private let isListed = Atomic(false)

  init(
    fileSystem: any FileSystem, descriptor: Int32, name: String, path: String,
    identity: FileIdentity? = nil, quota: DiskQuota? = nil
  ) {
    self.fileSystem = fileSystem
    self.descriptor = descriptor
    self.name = name
    self.path = path
    self.identity = identity
    self.quota = quota
  }

  /// The path of the directory in which the file was opened.
  package var directoryPath: String { String(path.utf8.dropLast(name.utf8.count + 1)) ?? path }

  deinit {
    leaveHeldLocks()
    fileSystem.close(descriptor)
  }

  /// Runs one call, and adds this file's path to its error.
  private func named<Value>(
    neededByteCount: Int = 0, _ body: () throws(SystemError) -> Value
  ) throws(StoreError) -> Value {
    do { return try body() } catch {
      throw error.storeError(path: path, neededByteCount: neededByteCount)
    }
  }

  package func status() throws(StoreError) -> FileStatus {
    try named { () throws(SystemError) in try fileSystem.status(of: descriptor) }
  }

  /// Whether the file's last name was removed while the file was open.
  package var isRemoved: Bool { (try? status())?.linkCount == 0 }

  package func lock(exclusively: Bool) throws(StoreError) -> Bool {
    try named { () throws(SystemError) in
      try fileSystem.lock(descriptor, exclusively: exclusively)
    }
  }

  /// Reads up to `buffer.count` bytes at `offset` and returns the number read; fewer only at the
  /// end of the file.
  package func read(into buffer: inout [UInt8], at offset: Int) throws(StoreError) -> Int {
    try read(into: &buffer, bufferOffset: 0, byteCount: buffer.count, at: offset)
  }

  /// Reads up to `byteCount` bytes at `offset` into the buffer from `bufferOffset`.
  package func read(
    into buffer: inout [UInt8], bufferOffset: Int, byteCount: Int, at offset: Int
  ) throws(StoreError) -> Int {
    precondition(bufferOffset >= 0 && byteCount >= 0 && bufferOffset + byteCount <= buffer.count)
    return try named { () throws(SystemError) in
      var done = 0
      // SAFETY: the range was checked against the buffer above.
      try buffer.withMutableSpan { (span) throws(SystemError) in
        try unsafe span.withUnsafeMutableBytes { (bytes) throws(SystemError) in
          while done < byteCount {
            let rest = unsafe UnsafeMutableRawBufferPointer(
              rebasing: bytes[(bufferOffset + done)..<(bufferOffset + byteCount)])
            let count = unsafe try fileSystem.read(descriptor, into: rest, at: offset + done)
            if count == 0 { break }
            done += count
          }
        }
      }
      return done
    }
  }

  /// Writes all the bytes at `offset`.
  package func write(_ bytes: RawSpan, at offset: Int) throws(StoreError) {
    quota?.add(bytes.byteCount)
    try named(neededByteCount: bytes.byteCount) { () throws(SystemError) in
      // SAFETY: the span keeps its memory alive during the call.
      try unsafe bytes.withUnsafeBytes { (bytes) throws(SystemError) in
        var done = 0
        while done < bytes.count {
          let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[done...])
          let count = unsafe try fileSystem.write(descriptor, from: rest, at: offset + done)
          if count == 0 {
            throw SystemError(call: "pwrite", errorNumber: SystemError.noSpace)
          }
          done += count
        }
      }
    }
  }

  /// Copies bytes of another file to the same place in this one. Shares
  /// blocks or copies in the kernel if possible.
  ///
  /// - Throws: `corrupt` if the other file is shorter.
  package func copy(
    from source: File, at start: Int = 0, byteCount: Int
  ) throws(StoreError) {
    let end = start + byteCount
    guard end <= fileSystem.fileSizeLimit() else {
      throw .noSpace(path: path, neededByteCount: byteCount, limit: .fileSize)
    }
    var done = start
    // The source may be stored into through a mapping beyond these bytes, and a page with a shared
    // block could then raise SIGBUS. So only whole pages are shared.
    let sharedEnd = end & ~4095
    do {
      while done < sharedEnd {
        let count = try fileSystem.copy(
          source.descriptor, to: descriptor, at: done, byteCount: sharedEnd - done)
        if count == 0 { break }
        done += count
      }
    } catch {
      let cannot = [
        SystemError.invalidArgument, SystemError.notSupported, SystemError.otherDevice,
      ]
      guard cannot.contains(error.errorNumber) || error.isRefusal else {
        throw error.storeError(path: path, neededByteCount: end - done)
      }
    }
    if done == end { return }
    var buffer = [UInt8](repeating: 0, count: min(1 << 20, end - done))
    while done < end {
      let wanted = min(buffer.count, end - done)
      let count = try source.read(into: &buffer, bufferOffset: 0, byteCount: wanted, at: done)
      guard count == wanted else {
        throw .corrupt(Corruption(file: source.name, offset: done + count, cause: .fileTooShort))
      }
      try write(buffer.rawSpan.extracting(0..<count), at: done)
      done += count
    }
  }

  /// Reserves blocks for `from..<to` and extends the file to `to`. Beyond RLIMIT_FSIZE, the call
  /// fails with `noSpace` and raises no signal.
  ///
  /// - Parameters:
  ///   - orExtend: whether extending the file is enough if the filesystem cannot reserve blocks. It
  ///     is not enough for a mapped file: a write to its pages could raise SIGBUS.
  ///   - mayExceedQuota: whether to ignore the directory's quota.
  package func allocate(
    from offset: Int, to end: Int, orExtend: Bool, mayExceedQuota: Bool = false
  ) throws(StoreError) {
    guard end <= fileSystem.fileSizeLimit() else {
      throw .noSpace(path: path, neededByteCount: end - offset, limit: .fileSize)
    }
    var takenByteCount = 0
    if let quota {
      if mayExceedQuota {
        quota.add(end - offset)
      } else {
        guard try quota.take(end - offset) else {
          throw .noSpace(path: path, neededByteCount: end - offset, limit: .quota)
        }
        takenByteCount = end - offset
      }
    }
    defer { if takenByteCount > 0 { quota?.settle(takenByteCount) } }
    try named(neededByteCount: end - offset) { () throws(SystemError) in
      var done = offset
      var step = end - offset
      while done < end {
        do throws(SystemError) {
          let count = min(step, end - done)
          try fileSystem.allocate(descriptor, from: done, byteCount: count)
          done += count
        } catch  where error.errorNumber == SystemError.interrupted {
          // In tmpfs, Linux before 6.10 undoes a whole allocation at any signal. If signals arrive
          // faster than an allocation finishes, only smaller allocations succeed.
          step = max(step / 2, 4096)
        } catch  where error.errorNumber == SystemError.notSupported && orExtend {
          return try fileSystem.truncate(descriptor, to: end)
        }
      }
    }
  }

  /// Takes the store's lock. This file must be the store's file LOCK.
  ///
  /// - Throws: `locked` if another opener holds the lock; `system`.
  package func lockStore(at path: String, exclusively: Bool) throws(StoreError) {
    let identity = try status().identity
    guard try lock(exclusively: exclusively) else {
      let isHere = identity.map { HeldLocks.contains($0) } ?? false
      let owner = isHere ? nil : identity.flatMap { LockOwner.processID(of: $0) }
      throw .locked(
        path: path, inThisProcess: isHere, processID: owner,
        since: owner.flatMap { LockOwner.startTime(of: $0) })
    }
    guard let identity else { return }
    HeldLocks.insert(ObjectIdentifier(self), identity)
    isListed.store(true, ordering: .relaxed)
  }

  /// Call before the file releases its lock or is closed.
  private func leaveHeldLocks() {
    if isListed.load(ordering: .relaxed) { HeldLocks.remove(ObjectIdentifier(self)) }
  }

  /// Releases the lock that `lockStore` took.
  package func unlock() {
    leaveHeldLocks()
    fileSystem.unlock(descriptor)
  }

  /// Whether writes to allocated blocks, in this file or one beside it, cannot run out of space;
  /// see `FileSystem.reservesBlocks`.
  ///
  /// - Throws: `unsupportedFileSystem` if blocks cannot be allocated.
  package func reservesBlocks() throws(StoreError) -> Bool {
    try named { () throws(SystemError) in try fileSystem.reservesBlocks(descriptor) }
  }

  package func truncate(to byteCount: Int) throws(StoreError) {
    try named { () throws(SystemError) in try fileSystem.truncate(descriptor, to: byteCount) }
  }

  /// A lock separate from that of `lock`: `true` takes it exclusively, `false` shares it, `nil`
  /// releases it.
  ///
  /// - Returns: `false` if another holder has it.
  package func lockBytes(exclusively: Bool?) throws(StoreError) -> Bool {
    try named { () throws(SystemError) in
      try fileSystem.lockBytes(descriptor, exclusively: exclusively)
    }
  }

  /// Rewrites a range of whole pages with its own contents. The next sync then writes out all of it,
  /// including pages that the kernel considers clean after a failed sync, and the pages have blocks
  /// of their own.
  package func rewrite(_ range: Range<Int>, skippingZeros: Bool) throws(StoreError) {
    let pageByteCount = 4096
    var page = [UInt8](repeating: 0, count: pageByteCount)
    for offset in stride(from: range.lowerBound, to: range.upperBound, by: pageByteCount) {
      let count = try read(
        into: &page, bufferOffset: 0, byteCount: min(pageByteCount, range.upperBound - offset),
        at: offset)
      let bytes = page.rawSpan.extracting(0..<count)
      if !skippingZeros || !bytes.isZero { try write(bytes, at: offset) }
    }
  }

  /// fdatasync. Never retried: after a failure, the kernel may forget the data that it could not
  /// write.
  package func synchronizeData() throws(StoreError) {
    try named { () throws(SystemError) in try fileSystem.synchronizeData(descriptor) }
  }

  package func synchronize() throws(StoreError) {
    try named { () throws(SystemError) in try fileSystem.synchronize(descriptor) }
  }

  /// Drops the file's clean pages from the page cache, if the system allows that.
  package func dropCache() throws(StoreError) {
    try named { () throws(SystemError) in
      do throws(SystemError) { try fileSystem.dropCache(descriptor) } catch {
        if !error.isRefusal { throw error }
      }
    }
  }
}
