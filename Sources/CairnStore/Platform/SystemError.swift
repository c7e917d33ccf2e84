internal import CairnLibC

/// A failed system call, before its path is known.
package struct SystemError: Error, Sendable, Hashable {
  package var call: String
  package var errorNumber: Int32

  package init(call: String, errorNumber: Int32) {
    self.call = call
    self.errorNumber = errorNumber
  }

  package static let noEntry = ENOENT
  package static let exists = EEXIST
  package static let interrupted = EINTR
  package static let noMemory = ENOMEM
  package static let fileTooLarge = EFBIG
  package static let noSpace = ENOSPC
  package static let quotaExceeded = EDQUOT
  package static let invalidArgument = EINVAL
  package static let tooManyOpenFiles = EMFILE
  package static let readOnlyFileSystem = EROFS
  package static let tooManyLinks = ELOOP
  package static let notSupported = EOPNOTSUPP
  package static let accessDenied = EACCES
  package static let notPermitted = EPERM
  package static let otherDevice = EXDEV
  package static let notADirectory = ENOTDIR
  package static let isADirectory = EISDIR

  /// Whether an error number means that the medium cannot deliver the bytes, as opposed to a lack
  /// of resources. Other offsets may be readable.
  package static func isOfMedium(_ errorNumber: Int32) -> Bool {
    numbersOfMedium.contains(errorNumber)
  }

  /// Whether an error number means that the process or the machine temporarily lacks a resource,
  /// whatever the file.
  package static func isOfProcess(_ errorNumber: Int32) -> Bool {
    [EMFILE, ENFILE, ENOMEM].contains(errorNumber)
  }

  /// Whether the kernel lacks the call, or a sandbox refuses it.
  package var isRefusal: Bool { errorNumber == ENOSYS || errorNumber == EPERM }

  package func failure(path: String) -> SystemFailure {
    // SAFETY: strerror returns a terminated string; glibc keeps it per thread.
    let reason = unsafe strerror(errorNumber).map { unsafe String(cString: $0) } ?? "unknown"
    return SystemFailure(call: call, path: path, errorNumber: errorNumber, reason: reason)
  }

  /// The error for the user. Lack of space has its own case.
  package func storeError(path: String, neededByteCount: Int = 0) -> StoreError {
    switch errorNumber {
    case ENOSPC: .noSpace(path: path, neededByteCount: neededByteCount, limit: .disk)
    case EDQUOT: .noSpace(path: path, neededByteCount: neededByteCount, limit: .quota)
    case EFBIG: .noSpace(path: path, neededByteCount: neededByteCount, limit: .fileSize)
    case ELOOP: .unsafeFile(path: path, reason: "it is a symbolic link")
    // Opening a directory for reading succeeds; its type is then refused.
    case EISDIR where call == "openat":
      .unsafeFile(path: path, reason: "it is \(FileStatus.Kind.directory.rawValue)")
    case EOPNOTSUPP where call == "fallocate":
      .unsupportedFileSystem(
        path: path, name: "a filesystem without fallocate, unless by system calls only")
    default: .system(failure(path: path))
    }
  }
}

extension StoreError {
  /// Whether a call failed because of the medium; see `SystemError.isOfMedium`.
  package var isOfMedium: Bool {
    if case .system(let failure) = self { return SystemError.isOfMedium(failure.errorNumber) }
    return false
  }

  /// Whether the data to read is lost: damaged or unreadable.
  package var isLoss: Bool {
    if case .corrupt = self { return true }
    return isOfMedium
  }
}

/// Runs one system call that returns -1 on failure. If a signal interrupts the call, retries it,
/// unless `retrying` is `false`.
///
/// Never inlined into a caller: a release there could run between the call and the check of
/// `errno`, and freeing memory may overwrite `errno`.
@inline(never)
func systemCall<Value: SignedInteger>(
  _ name: StaticString, retrying: Bool = true, _ body: () -> Value
) throws(SystemError) -> Value {
  while true {
    let result = body()
    if result != -1 { return result }
    let number = errno
    if number != EINTR || !retrying { throw SystemError(call: "\(name)", errorNumber: number) }
  }
}
