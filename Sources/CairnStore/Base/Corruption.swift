/// A damaged place in a store's files: bytes that the store cannot have written.
public struct Corruption: Sendable, Hashable, CustomStringConvertible {
  /// What is wrong with the bytes.
  package enum Cause: String, Sendable, Hashable, CustomStringConvertible {
    /// The manifest lists a file that does not exist.
    case missingFile
    /// A file is shorter than its recorded length.
    case fileTooShort
    /// A file does not begin with the magic bytes of its kind.
    case badMagic
    /// The checksum of a header, a manifest or a checkpoint does not match its bytes.
    case badChecksum
    /// Fields of a header, a manifest or a checkpoint contradict each other.
    case badHeader
    /// A record's header does not match its checksum, or has impossible sizes. The record's key may
    /// be unknown.
    case badRecordHeader
    /// A value does not match its checksum. The value's key is known.
    case badValue
    /// Padding bytes are not zero.
    case badPadding
    /// Records of an atomic batch are missing.
    case incompleteBatch
    /// A record is damaged, and later records prove that it was durable.
    case lostRecords
    /// A recorded length does not fit its file.
    case badLength
    /// The directory has a file that the manifest does not list.
    case unlistedFile
    /// A file is a directory, a link or a device, or belongs to another user.
    case unsafeFile
    /// The bytes cannot be read from the disk.
    case unreadable
    /// Records of an atomic batch are missing at the end of the log, so the batch may never have
    /// been applied.
    case unfinishedBatch
    /// A checkpoint has sound checksums but contradicts the records that it covers: it lacks a key
    /// that they have, or has one that they lack.
    case differsFromLog
    /// The manifest is missing, because a backup or salvage into this directory did not finish.
    case unfinishedCopy

    /// The cause in words, which later versions may change; `rawValue` is stable.
    package var description: String {
      switch self {
      case .missingFile: "the file is missing"
      case .fileTooShort: "the file is shorter than its recorded length"
      case .badMagic: "the file does not begin with the magic bytes of its kind"
      case .badChecksum: "the checksum does not match"
      case .badHeader: "the header's fields contradict each other or the manifest"
      case .badRecordHeader: "the record's header does not match its checksum or its limits"
      case .badValue: "the value does not match its checksum"
      case .badPadding: "the padding is not zero"
      case .incompleteBatch: "an atomic batch is not complete"
      case .lostRecords: "a record is damaged, but later records prove that it was stored"
      case .badLength: "a length does not fit its file"
      case .unlistedFile: "the manifest does not list the file"
      case .unsafeFile: "it is a directory, link or device, or belongs to another user"
      case .unreadable: "the bytes cannot be read"
      case .differsFromLog: "the checkpoint contradicts the records"
      case .unfinishedCopy:
        "the file is missing, because a copy into this directory is unfinished: delete the directory"
      case .unfinishedBatch: "an atomic batch at the end of the log may never have been applied"
      }
    }
  }

  /// In an error, the store's directory, as the caller gave it. `nil` in a report, because all its
  /// places are in one store.
  public package(set) var directory: String?
  /// The file's name in the store's directory.
  public let file: String
  /// Where the damage begins, in bytes from the start of the file.
  public let offset: Int
  package let cause: Cause
  /// The stable name of what is wrong there, such as `badValue`. The description has it in words.
  public var code: String { cause.rawValue }

  /// Describes a damaged place.
  ///
  /// - Parameters:
  ///   - directory: the store's directory, or `nil` if it is clear from the context.
  ///   - file: the file's name in the store's directory.
  ///   - offset: where the damage begins, in bytes from the start of the file.
  ///   - cause: what is wrong there.
  package init(directory: String? = nil, file: String, offset: Int, cause: Cause) {
    self.directory = directory
    self.file = file
    self.offset = offset
    self.cause = cause
  }

  /// The same place, without the directory, as reports list it.
  package var withoutDirectory: Corruption { Corruption(file: file, offset: offset, cause: cause) }

  /// File, offset and cause in one line, without the directory.
  public var description: String { "\(file) at offset \(offset): \(cause)" }
}
