/// The errors of stores, caches and loads. Each says what failed and where. Except for `conflict`,
/// no error contains keys or values. A minor version may add cases, so give every `switch` a
/// `default`.
public indirect enum StoreError: Error, Sendable, Hashable {
  // Opening.

  /// The path has no store, and the configuration forbids creating one.
  case noStore(path: String)
  /// The store is already open, in this process or another. If the other process is known, the
  /// error has its ID and start time.
  case locked(
    path: String, inThisProcess: Bool = false, processID: Int32? = nil, since: Timestamp? = nil)
  /// The directory contains files that are not a store, or only part of one.
  case notAStore(path: String, reason: String)
  /// A file or directory is not safe to use: it is a link or a device, belongs to another user, or
  /// is a directory instead of a file.
  case unsafeFile(path: String, reason: String)
  /// This version of Cairn cannot read the file's format version.
  case unsupportedVersion(file: String, major: Int)
  /// The filesystem cannot support the store's guarantees.
  case unsupportedFileSystem(path: String, name: String)
  /// The path cannot be used for this purpose. For example, the destination of a backup is not
  /// empty, a cache would be inside another cache's store, or a shared cache is open with other
  /// types.
  case unusable(path: String, reason: String)
  /// An option of the configuration is out of range.
  case invalidConfiguration(option: String, reason: String)

  // Reading.

  /// Bytes on disk are damaged. Other keys may be readable.
  case corrupt(Corruption)
  /// The bytes of a value are intact, but the value coder could not decode them, or a coder with
  /// another tag wrote them. The value was kept. `version` is the entry's version, for a
  /// compare-and-remove. The reason names the wrong part of the value if the coder reports it, as
  /// Foundation's coders do, but shows dictionary keys as `[…]`.
  case undecodable(version: UInt64, reason: String)

  // Writing.

  /// The key is empty, too long, or reserved for the cache. Nothing was written.
  case invalidKey(reason: String)
  /// A value, metadata or a batch is larger than its limit. `part` is the one of these words that
  /// says which. Nothing was written.
  case tooLarge(_ part: String, byteCount: Int, limit: Int)
  /// A coder could not encode a key or a value. Nothing was written. The reason names the wrong part
  /// of the value if the coder reports it, as Foundation's coders do.
  case unencodable(reason: String)
  /// A tag is empty or too long, the entry has too many tags, or too many removed tags have entries
  /// that are still being removed in the background. Nothing was written or removed. In the last
  /// case, `DiskCache.maintain()` finishes the removal.
  case invalidTag(reason: String)
  /// The value to increment is not a counter, because its size is not 8 bytes, or the new number
  /// does not fit in 64 bits. The value is unchanged.
  case notACounter(reason: String)
  /// A key has another version than a batch requires, or than a transaction has read. Nothing was
  /// written.
  case conflict(path: String, key: [UInt8])
  /// The call does not support this entry option. Only a `DiskCache` has tags. Nothing was written.
  case unsupportedOption(name: String)
  /// The store was opened for reading.
  case readOnly(path: String)
  /// The disk or a limit has no room for the write. Nothing was written. The store stays usable,
  /// and writes succeed again once space is free.
  case noSpace(path: String, neededByteCount: Int, limit: SpaceLimit)
  /// A sync failed while this write waited for it. The write may or may not survive a power cut.
  case durabilityUnknown(cause: SystemFailure)
  /// An earlier sync, or a change of the manifest, failed, so the store refuses writes. Reads
  /// continue. Reopening the store recovers it.
  case poisoned(cause: SystemFailure)

  // Any use.

  /// A load would wait for itself: its loader requested its own key, or a key whose load waits for
  /// this one. The loader's call throws this error.
  case circularLoad
  /// A load took longer than its policy's `timeLimit`. The load was cancelled. A late result is not
  /// kept.
  case loadTimedOut(limit: Duration)
  /// The store was closed.
  case closed(path: String)
  /// The task was cancelled before the work of the asynchronous call began. Nothing was done.
  case cancelled
  /// The process has no memory for this many more bytes of the index. A write that throws this
  /// error has written nothing. The store stays usable, and calls succeed again once memory is
  /// free.
  case outOfMemory(neededByteCount: Int)
  /// The directory, or the file `LOCK` in it, was removed while the store was open. The store
  /// accepts no more writes, and writes since the removal are lost. Reads continue. The store
  /// notices at the next durable write, at a write a second later, or when a call begins another
  /// segment, whichever comes first.
  case vanished(path: String)
  /// Data that a following store has read is gone: a recovery discarded it, or another store
  /// replaced the followed one. The next read sees the current store.
  case outdated(path: String)
  /// The process is a forked child of the process that opened the store.
  case usedAfterFork(path: String)
  /// A system call failed.
  case system(SystemFailure)
}

/// What left no room for a write. A minor version may add cases.
public enum SpaceLimit: Sendable, Hashable, CustomStringConvertible {
  /// The filesystem has no free block.
  case disk
  /// A disk quota, or the store's `diskByteLimit`, is used up.
  case quota
  /// The process may not create files that large (`RLIMIT_FSIZE`).
  case fileSize

  /// The limit in words, which later versions may change.
  public var description: String {
    switch self {
    case .disk: "the filesystem is full"
    case .quota: "the disk quota or the store's diskByteLimit is used up"
    case .fileSize: "the process's file-size limit (RLIMIT_FSIZE) is reached"
    }
  }
}

/// A failed system call, with its path and reason.
public struct SystemFailure: Sendable, Hashable, CustomStringConvertible {
  /// A remedy for a failure.
  package enum Advice: String, Sendable, Hashable, CustomStringConvertible {
    /// Create the parent directory first.
    case parentMustExist
    /// Open the store for reading, because this process may not write to it.
    case openForReading

    package var description: String {
      switch self {
      case .parentMustExist: "the parent directory must exist"
      case .openForReading: "Store(readingAt:) opens it for reading"
      }
    }
  }

  /// The name of the call, as in its manual page.
  public let call: String
  /// The file or directory that the call was for.
  public let path: String
  /// The number in `errno`.
  public let errorNumber: Int32
  /// The remedy, if known.
  package var advice: Advice?
  /// The system's words for the error number.
  package let reason: String

  /// Makes a failure.
  ///
  /// - Parameters:
  ///   - call: the name of the call, as in its manual page.
  ///   - path: the file or directory that the call was for.
  ///   - errorNumber: the number in `errno`.
  ///   - reason: the system's words for the error number.
  ///   - advice: the remedy, if known.
  package init(
    call: String, path: String, errorNumber: Int32, reason: String, advice: Advice? = nil
  ) {
    self.call = call
    self.path = path
    self.errorNumber = errorNumber
    self.reason = reason
    self.advice = advice
  }

  /// Call, path, reason, number and remedy in one line.
  public var description: String {
    "\(callDescription)\(advice.map { "; \($0)" } ?? "")"
  }

  /// Call, path, reason and number in one line.
  package var callDescription: String { "\(call) \(shown(path)): \(reason) (errno \(errorNumber))" }
}

extension StoreError {
  /// Returns the error. Adds the store's directory if the error reports damage without one.
  package func located(in directory: String) -> StoreError {
    guard case .corrupt(var corruption) = self, corruption.directory == nil else { return self }
    corruption.directory = directory
    return .corrupt(corruption)
  }
}

extension StoreError: CustomStringConvertible {
  /// The failure in one line, without keys and values, so that it is safe to log.
  public var description: String {
    switch self {
    case .noStore(let path): "\(shown(path)): there is no store at this path"
    case .locked(let path, let inThisProcess, let processID, let since):
      if inThisProcess {
        "\(shown(path)): the store is already open in this process"
      } else if let processID {
        "\(shown(path)): the store is open in process \(processID)"
          + (since.map { ", running since \($0)" } ?? ", or in a child process that outlived it")
      } else {
        "\(shown(path)): the store is open elsewhere"
      }
    case .notAStore(let path, let reason): "\(shown(path)): not a store: \(reason)"
    case .unsafeFile(let path, let reason): "\(shown(path)): not safe to use: \(reason)"
    case .unsupportedVersion(let file, let major):
      "\(file): written by format version \(major), which this version cannot read"
    case .unsupportedFileSystem(let path, let name):
      "\(shown(path)): \(name) cannot hold a store"
    case .unusable(let path, let reason): "\(shown(path)): not usable: \(reason)"
    case .invalidConfiguration(let option, let reason): "configuration: \(option): \(reason)"
    case .corrupt(let corruption):
      "\(corruption.directory.map { "\(shown($0)): " } ?? "")corrupt: \(corruption)"
        + (corruption.cause == .lostRecords
          ? "; cairn salvage copies the sound records into a new store, but loses the damaged one, "
            + "so that its key may be missing or have an older value" : "")
    case .undecodable(0, let reason): "a key could not be decoded: \(reason)"
    case .undecodable(let version, let reason):
      "the value of version \(version) could not be decoded: \(reason)"
    case .invalidKey(let reason): "not a valid key: \(reason)"
    case .tooLarge("value", let count, let limit):
      "a value has \(count) bytes; at most \(limit) are allowed by valueByteLimit, or by byteLimit "
        + "or diskByteLimit, which include the key"
    case .tooLarge("batch", let count, let limit):
      "a batch takes \(count) bytes; the limit is \(limit)"
    case .tooLarge(let part, let count, let limit):
      "\(part) has \(count) bytes; the limit is \(limit)"
    case .unencodable(let reason): "not encodable: \(reason)"
    case .invalidTag(let reason): "not a valid tag: \(reason)"
    case .readOnly(let path): "\(shown(path)): the store was opened for reading only"
    case .noSpace(let path, 0, .disk):
      "\(shown(path)): no room for another file: the filesystem is full, or has no inode left"
    case .noSpace(let path, let needed, let limit):
      "\(shown(path)): no room for \(needed) more bytes: \(limit)"
    case .durabilityUnknown(let cause):
      "the sync that would have made the write durable failed: \(cause)"
    case .poisoned(let cause):
      "the store accepts no more writes until it is reopened, because this failed: \(cause)"
    case .closed(let path): "\(shown(path)): the store was closed"
    case .notACounter(let reason): reason
    case .conflict(let path, let key):
      "\(shown(path)): the key \(shown(String(decoding: key, as: UTF8.self))) has another version"
    case .unsupportedOption(name: "entry in memory only"):
      "a memory-only entry needs a memory tier, and a plain set or load"
    case .unsupportedOption(let name): "a store has no \(name): use a cache"
    case .circularLoad: "a load waits for itself"
    case .loadTimedOut(let limit):
      "a load exceeded its time limit of \(max(0, limit.milliseconds)) ms"
    case .cancelled: "the task was cancelled before the work began"
    case .outOfMemory(let needed):
      "no memory for \(needed) more bytes of the index"
    case .outdated(let path):
      "\(shown(path)): the followed store was replaced or has lost data; the next read sees the current store"
    case .vanished(let path):
      "\(shown(path)): the directory, or the file LOCK in it, was removed while the store was open; "
        + "what was written since is lost"
    case .usedAfterFork(let path):
      "\(shown(path)): a forked child cannot use the store that its parent opened"
    case .system(let failure): failure.description
    }
  }
}

/// A path or a message for one line of text. Bytes that a line cannot show, such as a line feed,
/// become escapes such as `\x0A`.
package func shown(_ path: String) -> String {
  func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7F }
  guard path.utf8.contains(where: isControl) else { return path }
  return path.unicodeScalars.map { scalar in
    guard let byte = UInt8(exactly: scalar.value), isControl(byte) else { return String(scalar) }
    return "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
  }.joined()
}
