import Cairn
import CommandText
import Glibc

/// The result of the command, for the shell.
enum ExitStatus: Int32 {
  case done = 0
  case keyNotFound = 1
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
  static let needsParent = "the directory that it is to be made in must be there"

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
    case .noStore: "look at the path; cairn put and cairn import make a store"
    case .locked(_, _, let processID?, _): "close it there first, or end process \(processID)"
    case .locked(let path, _, _, _): "close it there first: fuser \(path)/LOCK tells the process"
    case .notAStore(let path, _) where !StoreLocation.holdsParts(path):
      "give the path of a store's own directory"
    case .notAStore(let path, _) where StoreLocation.lacksOnlyLock(path):
      "LOCK is an empty file, which a copy may have left out: touch \(path)/LOCK puts it back"
    case .unsafeFile(let path, _) where StoreLocation.isSparePart(path):
      "a store's files are regular ones of its owner's; cairn salvage copies what the others hold into a "
        + "new store"
    case .corrupt, .notAStore:
      "cairn verify lists all damage, cairn salvage copies what is sound into a new store"
    case .unsupportedVersion: "use a newer cairn"
    case .unusableDestination: "give a path where nothing is yet"
    case .noSpace(_, _, .fileSize): "raise the limit: ulimit -f tells it"
    case .unsafeFile:
      "see who made it and whose it is; a store and its files are one user's, the one who opens it"
    case .noSpace:
      "make room on the disk, or inside the store by cairn trim and cairn compact, as far as cairn help compact "
        + "says; or put a copy by cairn salvage, made on another disk, in its place"
    case .poisoned(let cause) where Self.refusals.contains(cause.errorNumber):
      "see whether the store's directory may be written to"
    case .durabilityUnknown, .poisoned: "look at the disk, then run cairn verify"
    case .system(let failure) where failure.advice == .parentMustExist:
      CommandFailure.needsParent
    case .system(let failure) where failure.advice == .openForReading:
      "the store cannot be written to from here; get, info, keys, stats, verify, salvage, backup "
        + "and export only read it"
    case .system(let failure) where Self.refusals.contains(failure.errorNumber):
      "see who owns the directory, and whether it may be read and written to"
    default: nil
    }
  }

  /// Errors that forbid writing somewhere.
  private static let refusals = [EACCES, EPERM, EROFS]
}
