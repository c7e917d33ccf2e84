/// The seam to the kernel: every system call on a store's files, and every write into a mapping,
/// goes through this protocol. `SystemFileSystem` calls the kernel. A simulator can replace it to
/// record, reorder, tear and fail calls.
///
/// One method is one system call and nothing more. `File` and `Directory` loop over short
/// transfers, know the paths for error messages and own the descriptors, so a simulated failure
/// exercises the code that ships. Dispatch through the existential costs a few nanoseconds, little
/// compared with a system call. `map` returns plain memory in both cases. Each write to that memory
/// is reported to `mappedWriteObserver`, which only a simulator has.
///
/// Every method is safe to call from any thread.
package protocol FileSystem: AnyObject, Sendable {
  // Directories. Names are single components, relative to an open directory.

  /// mkdir(2), mode 0700.
  func makeDirectory(path: String) throws(SystemError)
  /// mkdirat(2), mode 0700.
  func makeDirectory(_ name: String, in directory: Int32) throws(SystemError)
  /// open(2) with O_DIRECTORY.
  func openDirectory(path: String) throws(SystemError) -> Int32
  /// openat(2) with O_DIRECTORY | O_NOFOLLOW.
  func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32
  /// The names in a directory except "." and "..", in no particular order.
  func names(in directory: Int32) throws(SystemError) -> [String]
  /// renameat(2).
  func rename(
    _ name: String, in source: Int32, to newName: String, in target: Int32
  ) throws(SystemError)
  /// renameat2(2) with RENAME_EXCHANGE: atomically exchanges the files of two names. EINVAL or
  /// ENOSYS if this is impossible.
  func exchange(_ name: String, with other: String, in directory: Int32) throws(SystemError)
  /// unlinkat(2).
  func unlink(_ name: String, in directory: Int32) throws(SystemError)
  /// The kind of filesystem a directory is on.
  func volume(of directory: Int32) throws(SystemError) -> VolumeStatus

  /// fstatvfs(3): how many more bytes this process may allocate on a directory's filesystem.
  func freeByteCount(of directory: Int32) throws(SystemError) -> Int

  // Files.

  /// openat(2) with O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK; a new file has mode 0600 whatever the
  /// umask. The descriptor is never 0, 1 or 2.
  func open(_ name: String, in directory: Int32, mode: OpenMode) throws(SystemError) -> Int32
  func close(_ descriptor: Int32)
  /// fstat(2).
  func status(of descriptor: Int32) throws(SystemError) -> FileStatus
  /// fstatat(2) with AT_SYMLINK_NOFOLLOW.
  func status(of name: String, in directory: Int32) throws(SystemError) -> FileStatus
  /// flock(2) with LOCK_NB; `false` if another holder has it.
  func lock(_ descriptor: Int32, exclusively: Bool) throws(SystemError) -> Bool
  /// flock(2) with LOCK_UN: also releases the lock for descriptors that a forked child inherited.
  func unlock(_ descriptor: Int32)
  /// fcntl(2) with F_OFD_SETLK over all of the file: a lock separate from that of `lock`. `nil`
  /// releases it. Returns `false` if another holder has it.
  func lockBytes(_ descriptor: Int32, exclusively: Bool?) throws(SystemError) -> Bool
  /// pread(2); may return fewer bytes than requested, and 0 at the end of the file.
  func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int
  /// lseek(2) with SEEK_DATA: where bytes that are not a hole begin, from `offset` on; `Int.max` if
  /// there are none, `offset` if the filesystem cannot tell.
  func nextData(_ descriptor: Int32, from offset: Int) -> Int
  /// pwrite(2); may write fewer bytes than given.
  func write(
    _ descriptor: Int32, from buffer: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int
  /// copy_file_range(2), to the same offset of another file. Shares blocks if the filesystem can.
  /// May copy fewer bytes than requested; EINVAL, ENOSYS, EOPNOTSUPP or EXDEV if copying is
  /// impossible.
  func copy(
    _ source: Int32, to target: Int32, at offset: Int, byteCount: Int
  ) throws(SystemError) -> Int
  /// fallocate(2): reserves blocks and extends the file, so that later writes cannot fail for lack
  /// of space. EINTR means that a signal came first; the call is not retried here.
  func allocate(_ descriptor: Int32, from offset: Int, byteCount: Int) throws(SystemError)
  /// Whether writes to a mapping of allocated blocks, in files like this one, cannot run out of
  /// space. Takes an empty file open for writing. The file keeps its length, and gets a block if it
  /// has none.
  ///
  /// EOPNOTSUPP if the filesystem can usually reserve blocks but cannot here (ext3 has no
  /// fallocate).
  func reservesBlocks(_ descriptor: Int32) throws(SystemError) -> Bool
  /// ftruncate(2).
  func truncate(_ descriptor: Int32, to byteCount: Int) throws(SystemError)
  /// fdatasync(2).
  func synchronizeData(_ descriptor: Int32) throws(SystemError)
  /// fsync(2).
  func synchronize(_ descriptor: Int32) throws(SystemError)
  /// posix_fadvise(2), POSIX_FADV_DONTNEED over the whole file: drops clean cached pages.
  func dropCache(_ descriptor: Int32) throws(SystemError)

  // Mappings.

  /// mmap(2), MAP_SHARED. `byteCount` may extend beyond the end of the file; that part must not be
  /// touched until the file has grown.
  func map(
    _ descriptor: Int32, byteCount: Int, writable: Bool
  ) throws(SystemError) -> UnsafeMutableRawPointer
  func unmap(_ address: UnsafeMutableRawPointer, byteCount: Int)
  /// mprotect(2), PROT_READ.
  func protect(_ address: UnsafeMutableRawPointer, byteCount: Int) throws(SystemError)
  /// madvise(2), MADV_POPULATE_WRITE. A hint: failures do not matter.
  func prefault(_ address: UnsafeMutableRawPointer, byteCount: Int)
  /// madvise(2), MADV_DONTNEED: the pages stay in the cache, and the next access finds them there.
  /// A hint.
  func unmapPages(_ address: UnsafeMutableRawPointer, byteCount: Int)
  /// Called after each write to a mapping. `nil` outside simulations.
  var mappedWriteObserver: (any MappedWriteObserver)? { get }

  // The process and the machine.

  /// Identifies the current boot: stays the same until the machine restarts. Not every process may
  /// know it; use `currentBoot`.
  func bootIdentifier() throws(SystemError) -> [UInt8]
  /// Unpredictable bytes.
  func randomBytes(count: Int) throws(SystemError) -> [UInt8]
  /// RLIMIT_FSIZE in bytes. Check it before each write or allocation: exceeding it raises SIGXFSZ.
  func fileSizeLimit() -> Int
  /// The effective user id.
  func userIdentifier() -> UInt32
}

extension FileSystem {
  /// 16 bytes that identify the current boot. An unknown boot is like no other, so it counts as a
  /// restart: containers and services may hide `/proc/sys`.
  ///
  /// - Parameter path: the path that an error names if no random bytes can be had.
  package func currentBoot(path: String) throws(StoreError) -> [UInt8] {
    do throws(SystemError) {
      let identifier = try bootIdentifier()
      if identifier.count == 16 { return identifier }
    } catch {
      if SystemError.isOfProcess(error.errorNumber) {
        throw error.storeError(path: "/proc/sys/kernel/random/boot_id")
      }
    }
    do throws(SystemError) { return try randomBytes(count: 16) } catch {
      throw error.storeError(path: path)
    }
  }
}

/// Observes the writes that no system call shows.
package protocol MappedWriteObserver: AnyObject, Sendable {
  /// - Parameter mapping: the address that `map` returned.
  func didWrite(mapping: UInt, offset: Int, byteCount: Int)
}

/// How a file is opened.
package enum OpenMode: Sendable {
  case readOnly
  case readWrite
  /// Read and write; the file must not exist.
  case createNew
  /// Read and write; created if it does not exist.
  case createIfMissing
}
