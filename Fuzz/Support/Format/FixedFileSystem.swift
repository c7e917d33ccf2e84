import CairnLibC
package import CairnStore
import Synchronization

/// Files in memory that cannot be changed, with a count of the bytes read.
package final class FixedFileSystem: FileSystem {
  private static let directory: Int32 = 3
  private static let firstFile: Int32 = 4

  private let files: [(name: String, bytes: [UInt8])]
  private let boot: [UInt8]
  private let readCount = Atomic(0)

  /// Bytes that were read so far.
  package var readByteCount: Int { readCount.load(ordering: .relaxed) }

  package init(files: [(name: String, bytes: [UInt8])], bootIdentifier: [UInt8] = []) {
    self.files = files
    boot = bootIdentifier
  }

  private func refused(_ call: String) -> SystemError {
    SystemError(call: call, errorNumber: EROFS)
  }

  private func bytes(of descriptor: Int32, _ call: String) throws(SystemError) -> [UInt8] {
    guard descriptor >= Self.firstFile, descriptor - Self.firstFile < files.count else {
      throw SystemError(call: call, errorNumber: EBADF)
    }
    return files[Int(descriptor - Self.firstFile)].bytes
  }

  package func openDirectory(path: String) throws(SystemError) -> Int32 { Self.directory }

  package func names(in directory: Int32) throws(SystemError) -> [String] { files.map(\.name) }

  package func volume(of directory: Int32) throws(SystemError) -> VolumeStatus {
    VolumeStatus(unsupportedName: nil, mapsFiles: true)
  }

  package func freeByteCount(of directory: Int32) throws(SystemError) -> Int { .max }

  package func open(
    _ name: String, in directory: Int32, mode: OpenMode
  ) throws(SystemError) -> Int32 {
    guard let index = files.firstIndex(where: { $0.name == name }) else {
      throw SystemError(call: "openat", errorNumber: ENOENT)
    }
    return Self.firstFile + Int32(index)
  }

  package func close(_ descriptor: Int32) {}

  package func status(of descriptor: Int32) throws(SystemError) -> FileStatus {
    if descriptor == Self.directory {
      return FileStatus(
        kind: .directory, byteCount: 0, allocatedByteCount: 0, owner: userIdentifier(),
        linkCount: 1)
    }
    let count = try bytes(of: descriptor, "fstat").count
    return FileStatus(
      kind: .regular, byteCount: count, allocatedByteCount: count, owner: userIdentifier(),
      linkCount: 1)
  }

  package func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    let bytes = try bytes(of: descriptor, "pread")
    guard offset >= 0 else { throw SystemError(call: "pread", errorNumber: EINVAL) }
    let count = min(buffer.count, max(0, bytes.count - offset))
    if count > 0 { unsafe buffer.copyBytes(from: bytes[offset..<(offset + count)]) }
    readCount.add(count, ordering: .relaxed)
    return count
  }

  package func lock(_ descriptor: Int32, exclusively: Bool) throws(SystemError) -> Bool { true }
  package func unlock(_ descriptor: Int32) {}
  package func lockBytes(_ descriptor: Int32, exclusively: Bool?) throws(SystemError) -> Bool {
    true
  }
  package var mappedWriteObserver: (any MappedWriteObserver)? { nil }
  package func bootIdentifier() throws(SystemError) -> [UInt8] { boot }
  package func fileSizeLimit() -> Int { .max }
  package func userIdentifier() -> UInt32 { 1000 }

  // MARK: Calls that would change something

  package func makeDirectory(path: String) throws(SystemError) { throw refused("mkdir") }

  package func makeDirectory(_ name: String, in directory: Int32) throws(SystemError) {
    throw refused("mkdirat")
  }

  package func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32 {
    throw SystemError(call: "openat", errorNumber: ENOENT)
  }

  package func rename(
    _ name: String, in source: Int32, to newName: String, in target: Int32
  ) throws(SystemError) {
    throw refused("renameat")
  }

  package func exchange(
    _ name: String, with other: String, in directory: Int32
  ) throws(SystemError) {
    throw refused("renameat2")
  }

  package func unlink(_ name: String, in directory: Int32) throws(SystemError) {
    throw refused("unlinkat")
  }

  package func write(
    _ descriptor: Int32, from buffer: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    throw refused("pwrite")
  }

  package func allocate(
    _ descriptor: Int32, from offset: Int, byteCount: Int
  ) throws(SystemError) {
    throw refused("fallocate")
  }

  package func status(of name: String, in directory: Int32) throws(SystemError) -> FileStatus {
    throw refused("fstatat")
  }

  package func nextData(_ descriptor: Int32, from offset: Int) -> Int { offset }

  package func reservesBlocks(_ descriptor: Int32) throws(SystemError) -> Bool { false }

  package func truncate(_ descriptor: Int32, to byteCount: Int) throws(SystemError) {
    throw refused("ftruncate")
  }

  package func synchronizeData(_ descriptor: Int32) throws(SystemError) {
    throw refused("fdatasync")
  }

  package func synchronize(_ descriptor: Int32) throws(SystemError) { throw refused("fsync") }
  package func copy(
    _ source: Int32, to target: Int32, at offset: Int, byteCount: Int
  ) throws(SystemError) -> Int { throw refused("copy_file_range") }
  package func dropCache(_ descriptor: Int32) throws(SystemError) { throw refused("fadvise") }

  package func map(
    _ descriptor: Int32, byteCount: Int, writable: Bool
  ) throws(SystemError) -> UnsafeMutableRawPointer {
    throw refused("mmap")
  }

  package func unmap(_ address: UnsafeMutableRawPointer, byteCount: Int) {}

  package func protect(
    _ address: UnsafeMutableRawPointer, byteCount: Int
  ) throws(SystemError) {
    throw refused("mprotect")
  }

  package func prefault(_ address: UnsafeMutableRawPointer, byteCount: Int) {}
  package func unmapPages(_ address: UnsafeMutableRawPointer, byteCount: Int) {}

  package func randomBytes(count: Int) throws(SystemError) -> [UInt8] {
    throw refused("getrandom")
  }
}
