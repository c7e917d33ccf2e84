/// A place in a store's files whose bytes cannot be what the store wrote.
public struct Corruption: Sendable, Hashable, CustomStringConvertible {
  /// What is wrong with the bytes. A minor version may add cases.
  public enum Cause: String, Sendable, Hashable, CustomStringConvertible {
    /// The manifest lists a file that is not there.
    case missingFile
    /// A file is shorter than the length that is recorded of it.
    case fileTooShort
    /// A file does not begin with the bytes that tell its kind.
    case badMagic
    /// The checksum of a header, a manifest or a checkpoint does not match its bytes.
    case badChecksum
    /// Fields of a header, a manifest or a checkpoint contradict each other.
    case badHeader
    /// A record's header does not match its checksum, or names sizes that cannot be. Its key is not known.
    case badRecordHeader
    /// A value does not match its checksum. Its key is known.
    case badValue
    /// Bytes that only fill up are not zero.
    case badPadding
    /// Records of an atomic batch are missing.
    case incompleteBatch
    /// A record is damaged that was durable: later ones prove it.
    case lostRecords
    /// A length that is recorded does not fit its file.
    case badLength
    /// A file lies in the directory that the manifest does not know.
    case unlistedFile
    /// A file is a directory, a link, a device or another user's.
    case unsafeFile
    /// The disk does not give the bytes.
    case unreadable
    /// Records of an atomic batch are missing at the end of the log, where it may never have been applied.
    case unfinishedBatch
    /// A checkpoint is sound and says something else than the records that it speaks of: keys are lost that an
    /// open without it would find, or the other way round.
    case differsFromLog
    /// The manifest is missing since a backup, or a salvage, to this directory did not come to its end.
    case unfinishedCopy

    /// The cause in words, which later versions may put otherwise; `rawValue` stays as it is.
    public var description: String {
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
      case .lostRecords: "a record is damaged although later ones prove that it was stored"
      case .badLength: "a length does not fit its file"
      case .unlistedFile: "the manifest does not know the file"
      case .unsafeFile: "it is a directory, a link, a device or another user's"
      case .unreadable: "the bytes cannot be read"
      case .differsFromLog: "the checkpoint does not say what the records say"
      case .unfinishedCopy:
        "the file is missing: a copy of a store was being made here, and is unfinished"
      case .unfinishedBatch: "an atomic batch at the end of the log may never have been applied"
      }
    }
  }

  /// The store's directory, as it was given, in an error; `nil` in a report, which is of one store.
  public var directory: String?
  /// The file's name in the store's directory.
  public var file: String
  /// Where the damage begins, in bytes from the start of the file.
  public var offset: Int
  /// What is wrong there.
  public var cause: Cause

  /// Names a place.
  ///
  /// - Parameters:
  ///   - directory: the store's directory, or `nil` where that is known anyway.
  ///   - file: the file's name in the store's directory.
  ///   - offset: where the damage begins, in bytes from the start of the file.
  ///   - cause: what is wrong there.
  package init(directory: String? = nil, file: String, offset: Int, cause: Cause) {
    self.directory = directory
    self.file = file
    self.offset = offset
    self.cause = cause
  }

  /// The same place, as a report has it.
  package var withoutDirectory: Corruption { Corruption(file: file, offset: offset, cause: cause) }

  /// File, offset and cause in one line, without the directory.
  public var description: String { "\(file) at offset \(offset): \(cause)" }
}
