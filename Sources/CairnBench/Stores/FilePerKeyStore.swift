import Cairn
import CairnLibC
import Synchronization

/// One file per key, like TMDiskCache and PINDiskCache, without their overheads: no archiver, no
/// queue, no dictionary of dates and sizes.
///
/// - A write goes to a temporary file, which is then renamed to the key's file name: a reader sees
///   the old value or the new one, and a crash leaves a temporary file that the next open removes.
/// - A read sets the file's times to now: the filesystem keeps the access order.
/// - With `.durable`, the file is synced before the rename and the directory after it. Otherwise
///   nothing is synced.
///
/// No name begins with a dot (see `FileName`), so the temporary files' folder cannot be a key's
/// file.
final class FilePerKeyStore: KeyValueStore {
  static let name = "file-per-key"
  static let abilities: StoreAbilities = [.durableWrites, .concurrentWrites, .reopening]

  let path: String
  private let directory: Int32
  private let temporaryDirectory: Int32
  private let syncs: Bool
  private let nextTemporaryNumber = Atomic<UInt64>(0)
  private static let temporaryDirectoryName = ".temporary"

  init(at path: String, options: StoreOptions) throws {
    self.path = path
    syncs = options.durability != .process
    directory = try Self.openDirectory(path, in: AT_FDCWD)
    do {
      temporaryDirectory = try Self.openDirectory(Self.temporaryDirectoryName, in: directory)
    } catch {
      _ = CairnLibC.close(directory)
      throw error
    }
    for name in try DirectoryTree.names(in: path + "/" + Self.temporaryDirectoryName) {
      unsafe unlinkat(temporaryDirectory, name, 0)
    }
  }

  private static func openDirectory(_ name: String, in parent: Int32) throws -> Int32 {
    // SAFETY: the name is passed as a string that outlives the calls.
    if unsafe mkdirat(parent, name, 0o700) != 0, errno != EEXIST {
      throw BenchFailure.lastSystemError("mkdirat", name)
    }
    let descriptor = unsafe openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw BenchFailure.lastSystemError("openat", name) }
    return descriptor
  }

  func value(forKey key: RawSpan) throws -> [UInt8]? {
    let file = try unsafe FileName.withEncoded(key) { name in
      // SAFETY: the name is NUL-terminated and outlives the call.
      unsafe openat(directory, name, O_RDONLY | O_CLOEXEC)
    }
    guard file >= 0 else {
      if errno == ENOENT { return nil }
      throw failure("openat")
    }
    defer { _ = CairnLibC.close(file) }
    var status = stat()
    // SAFETY: the kernel fills the structure.
    guard unsafe fstat(file, &status) == 0 else { throw failure("fstat") }
    let value = try readAll(file, byteCount: Int(status.st_size))
    guard futimens(file, nil) == 0 else { throw failure("futimens") }
    return value
  }

  private func readAll(_ file: Int32, byteCount: Int) throws -> [UInt8] {
    // SAFETY: `read` gets the rest of the buffer, and only the bytes that it filled count.
    try unsafe [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, filled in
      while filled < byteCount {
        let rest = unsafe UnsafeMutableBufferPointer(rebasing: buffer[filled..<byteCount])
        let count = unsafe read(file, rest.baseAddress, rest.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { throw failure("read") }
        filled += count
      }
    }
  }

  func setValue(_ value: RawSpan, forKey key: RawSpan) throws {
    // Encode the name first, so that a key without a valid name leaves nothing behind.
    try unsafe FileName.withEncoded(key) { name in try unsafe setValue(value, inFile: name) }
  }

  private func setValue(_ value: RawSpan, inFile name: UnsafePointer<CChar>) throws {
    let number = nextTemporaryNumber.add(1, ordering: .relaxed).oldValue
    let temporaryName = String(number, radix: 36)
    // SAFETY: both names are NUL-terminated and outlive the calls.
    let file = unsafe openat(
      temporaryDirectory, temporaryName, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw failure("openat") }
    do {
      defer { _ = CairnLibC.close(file) }
      try writeAll(value, to: file)
      // DURABILITY: the contents come first, so the name never leads to a part of the value. A
      // crash before the rename leaves the old value and a temporary file.
      if syncs, fsync(file) != 0 { throw failure("fsync") }
    } catch {
      unsafe unlinkat(temporaryDirectory, temporaryName, 0)
      throw error
    }
    guard unsafe renameat(temporaryDirectory, temporaryName, directory, name) == 0 else {
      let failure = failure("renameat")
      unsafe unlinkat(temporaryDirectory, temporaryName, 0)
      throw failure
    }
    // DURABILITY: makes the rename durable, so the put may be acknowledged.
    if syncs, fsync(directory) != 0 { throw failure("fsync") }
  }

  private func writeAll(_ value: RawSpan, to file: Int32) throws {
    // SAFETY: `write` gets the rest of the span's bytes.
    try unsafe value.withUnsafeBytes { bytes in
      var written = 0
      while written < bytes.count {
        let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[written...])
        let count = unsafe write(file, rest.baseAddress, rest.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { throw failure("write") }
        written += count
      }
    }
  }

  @discardableResult
  func removeValue(forKey key: RawSpan) throws -> Bool {
    let result = try unsafe FileName.withEncoded(key) { name in
      // SAFETY: the name is NUL-terminated and outlives the call.
      unsafe unlinkat(directory, name, 0)
    }
    guard result == 0 else {
      if errno == ENOENT { return false }
      throw failure("unlinkat")
    }
    // DURABILITY: makes the removal durable, so it may be acknowledged.
    if syncs, fsync(directory) != 0 { throw failure("fsync") }
    return true
  }

  func close() throws {
    _ = CairnLibC.close(temporaryDirectory)
    _ = CairnLibC.close(directory)
  }

  private func failure(_ call: String) -> BenchFailure { .lastSystemError(call, path) }
}
