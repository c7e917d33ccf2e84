/// A place in a store's files whose bytes cannot be what the store wrote.
public struct Corruption: Sendable, Hashable, CustomStringConvertible {
  /// What is wrong with the bytes.
  public enum Cause: String, Sendable, Hashable {
    case missingFile = "the file is missing"
    case fileTooShort = "the file is shorter than its recorded length"
    case badMagic = "the file does not begin with the magic bytes of its kind"
    case badChecksum = "the checksum does not match"
    case badHeader = "the header's fields contradict each other or the manifest"
    case badRecordHeader = "the record's header does not match its checksum or its limits"
    case badValue = "the value does not match its checksum"
    case badPadding = "the padding is not zero"
    case incompleteBatch = "an atomic batch is not complete"
    case lostRecords = "a record is damaged although later ones prove that it was stored"
    case badLength = "a length does not fit its file"
    case unlistedFile = "the manifest does not know the file"
    case unsafeFile = "the file is a link, a device or another user's"
    case unreadable = "the bytes cannot be read"
    case unfinishedBatch = "an atomic batch at the end of the log may never have been applied"
  }

  /// The file's name in the store's directory.
  public var file: String
  /// Where the damage begins, in bytes from the start of the file.
  public var offset: Int
  /// What is wrong there.
  public var cause: Cause

  public init(file: String, offset: Int, cause: Cause) {
    self.file = file
    self.offset = offset
    self.cause = cause
  }

  public var description: String { "\(file) at offset \(offset): \(cause.rawValue)" }
}
