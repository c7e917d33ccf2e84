package import CairnStore

/// A file system that passes every call on to another. A conforming type implements only the calls
/// that it changes.
package protocol FileSystemDecorator: FileSystem {
  var base: any FileSystem { get }
}

extension FileSystemDecorator {
  package func makeDirectory(path: String) throws(SystemError) {
    try base.makeDirectory(path: path)
  }

  package func makeDirectory(_ name: String, in directory: Int32) throws(SystemError) {
    try base.makeDirectory(name, in: directory)
  }

  package func openDirectory(path: String) throws(SystemError) -> Int32 {
    try base.openDirectory(path: path)
  }

  package func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32 {
    try base.openDirectory(name, in: directory)
  }

  package func names(in directory: Int32) throws(SystemError) -> [String] {
    try base.names(in: directory)
  }

  package func rename(
    _ name: String, in source: Int32, to newName: String, in target: Int32
  ) throws(SystemError) {
    try base.rename(name, in: source, to: newName, in: target)
  }

  package func exchange(
    _ name: String, with other: String, in directory: Int32
  ) throws(SystemError) {
    try base.exchange(name, with: other, in: directory)
  }

  package func unlink(_ name: String, in directory: Int32) throws(SystemError) {
    try base.unlink(name, in: directory)
  }

  package func volume(of directory: Int32) throws(SystemError) -> VolumeStatus {
    try base.volume(of: directory)
  }

  package func freeByteCount(of directory: Int32) throws(SystemError) -> Int {
    try base.freeByteCount(of: directory)
  }

  package func open(
    _ name: String, in directory: Int32, mode: OpenMode
  ) throws(SystemError) -> Int32 {
    try base.open(name, in: directory, mode: mode)
  }

  package func close(_ descriptor: Int32) { base.close(descriptor) }

  package func status(
    of name: String, in directory: Int32
  ) throws(SystemError) -> FileStatus {
    try base.status(of: name, in: directory)
  }

  package func reservesBlocks(_ descriptor: Int32) throws(SystemError) -> Bool {
    try base.reservesBlocks(descriptor)
  }

  package func status(of descriptor: Int32) throws(SystemError) -> FileStatus {
    try base.status(of: descriptor)
  }

  package func lock(_ descriptor: Int32, exclusively: Bool) throws(SystemError) -> Bool {
    try base.lock(descriptor, exclusively: exclusively)
  }

  package func unlock(_ descriptor: Int32) { base.unlock(descriptor) }

  package func lockBytes(_ descriptor: Int32, exclusively: Bool?) throws(SystemError) -> Bool {
    try base.lockBytes(descriptor, exclusively: exclusively)
  }

  package func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    try unsafe base.read(descriptor, into: buffer, at: offset)
  }

  package func nextData(_ descriptor: Int32, from offset: Int) -> Int {
    base.nextData(descriptor, from: offset)
  }

  package func write(
    _ descriptor: Int32, from buffer: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    try unsafe base.write(descriptor, from: buffer, at: offset)
  }

  package func copy(
    _ source: Int32, to target: Int32, at offset: Int, byteCount: Int
  ) throws(SystemError) -> Int {
    try base.copy(source, to: target, at: offset, byteCount: byteCount)
  }

  package func allocate(
    _ descriptor: Int32, from offset: Int, byteCount: Int
  ) throws(SystemError) {
    try base.allocate(descriptor, from: offset, byteCount: byteCount)
  }

  package func truncate(_ descriptor: Int32, to byteCount: Int) throws(SystemError) {
    try base.truncate(descriptor, to: byteCount)
  }

  package func synchronizeData(_ descriptor: Int32) throws(SystemError) {
    try base.synchronizeData(descriptor)
  }

  package func synchronize(_ descriptor: Int32) throws(SystemError) {
    try base.synchronize(descriptor)
  }

  package func dropCache(_ descriptor: Int32) throws(SystemError) {
    try base.dropCache(descriptor)
  }

  package func map(
    _ descriptor: Int32, byteCount: Int, writable: Bool
  ) throws(SystemError) -> UnsafeMutableRawPointer {
    try unsafe base.map(descriptor, byteCount: byteCount, writable: writable)
  }

  package func unmap(_ address: UnsafeMutableRawPointer, byteCount: Int) {
    unsafe base.unmap(address, byteCount: byteCount)
  }

  package func protect(_ address: UnsafeMutableRawPointer, byteCount: Int) throws(SystemError) {
    try unsafe base.protect(address, byteCount: byteCount)
  }

  package func prefault(_ address: UnsafeMutableRawPointer, byteCount: Int) {
    unsafe base.prefault(address, byteCount: byteCount)
  }

  package func unmapPages(_ address: UnsafeMutableRawPointer, byteCount: Int) {
    unsafe base.unmapPages(address, byteCount: byteCount)
  }

  package var mappedWriteObserver: (any MappedWriteObserver)? { base.mappedWriteObserver }

  package func bootIdentifier() throws(SystemError) -> [UInt8] { try base.bootIdentifier() }

  package func randomBytes(count: Int) throws(SystemError) -> [UInt8] {
    try base.randomBytes(count: count)
  }

  package func fileSizeLimit() -> Int { base.fileSizeLimit() }
  package func userIdentifier() -> UInt32 { base.userIdentifier() }
}
