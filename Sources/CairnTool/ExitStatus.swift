import Cairn
import CairnLibC
import CommandText

/// The result of the command, for the shell.
enum ExitStatus: Int32 {
  case done = 0
  /// A key is missing, or `put --if-absent` has found it.
  case keyState = 1
  case usage = 2
  case corrupt = 3
  case locked = 4
  case failure = 5
  /// The status that a shell reports for a program that ended because its output was closed: 128 +
  /// SIGPIPE.
  case outputClosed = 141

  /// The more important of two statuses: damage before anything else.
  func combined(with other: ExitStatus) -> ExitStatus {
    if self == .corrupt || other == .corrupt { return .corrupt }
    return rawValue >= other.rawValue ? self : other
  }
}

/// Why a command ended early: a status for the shell and one line for people.
struct CommandFailure: Error {
  let status: ExitStatus
  let message: String

  init(_ status: ExitStatus, _ message: String) {
    self.status = status
    self.message = message
  }

  /// What to do if the parent directory does not exist.
  static let needsParent = "the parent directory must exist"

  /// The command line is invalid.
  static func usage(_ message: String) -> CommandFailure { CommandFailure(.usage, message) }

  /// A system call on a named file failed.
  init(_ error: SystemError, path: [UInt8]) {
    self.init(.failure, "\(DisplayText.line(path)): \(error.reason)")
  }

  /// The error for one of several keys.
  init(_ error: StoreError, key: [UInt8]) {
    let failure = CommandFailure(error)
    self.init(failure.status, "\(DisplayText.line(key)): \(failure.message)")
  }

  /// The failure for any error.
  init(_ error: any Error) {
    switch error {
    case let failure as CommandFailure: self = failure
    case let error as StoreError:
      // The library's advice is meant for programs.
      var description = error.description
      if case .system(let failure) = error { description = failure.callDescription }
      self.init(ExitStatus(error), description + (error.advice.map { "; \($0)" } ?? ""))
    case let error as SystemError: self.init(.failure, "\(error.call): \(error.reason)")
    default: self.init(.failure, "\(error)")
    }
  }
}

extension ExitStatus {
  init(_ error: StoreError) {
    switch error {
    case .corrupt, .unsupportedVersion: self = .corrupt
    case .notAStore(let path, _): self = StoreLocation.holdsParts(path) ? .corrupt : .failure
    case .locked: self = .locked
    default: self = .failure
    }
  }
}

extension StoreError {
  /// What to do next, if known.
  fileprivate var advice: String? {
    switch self {
    case .noStore: "check the path; cairn put, increment, load and import create a store"
    case .locked(_, _, let processID?, _): "close it there first, or end process \(processID)"
    case .locked(let path, _, _, _): "close it there first: fuser \(path)/LOCK shows the process"
    case .notAStore(let path, _) where !StoreLocation.holdsParts(path):
      "give the path of a store's directory"
    case .notAStore(let path, _) where StoreLocation.lacksOnlyLock(path):
      "LOCK is an empty file that a copy may have omitted: touch \(path)/LOCK restores it"
    case .unsafeFile(let path, _) where StoreLocation.isSparePart(path):
      "a store has only regular files of its owner; cairn salvage copies the data in the other files into a "
        + "new store"
    case .corrupt, .notAStore:
      "cairn verify lists all damage; cairn salvage copies the sound part into a new store"
    case .unsupportedVersion: "use a newer cairn"
    case .unusable: "give a missing or empty directory"
    case .noSpace(_, _, .fileSize): "raise the limit: ulimit -f shows it"
    case .unsafeFile:
      "check who made it and who owns it; a store and its files belong to the user who opens it"
    case .noSpace:
      "make room on the disk, or in the store with cairn trim and cairn compact (see cairn help compact), "
        + "or replace the store with a copy that cairn salvage makes on another disk"
    case .poisoned(let cause) where Self.refusals.contains(cause.errorNumber):
      "check whether the store's directory is writable"
    case .durabilityUnknown, .poisoned: "check the disk, then run cairn verify"
    case .system(let failure) where failure.advice == .parentMustExist:
      CommandFailure.needsParent
    case .system(let failure) where failure.advice == .openForReading:
      "the store is not writable from here; get, info, keys, dump, stats, verify, salvage, "
        + "backup and export only read it"
    case .system(let failure) where Self.refusals.contains(failure.errorNumber):
      "check who owns the directory, and whether it is readable and writable"
    default: nil
    }
  }

  /// Error numbers that mean that writing is forbidden.
  private static let refusals = [EACCES, EPERM, EROFS]
}
