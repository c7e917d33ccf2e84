import Cairn
import CairnLibC

/// The records of a file that is only appended to, as `raw-copy` and `raw-write` leave them:
///
///     0           4             8     8 + keyLength
///     ┌───────────┬─────────────┬─────┬───────┐
///     │ keyLength │ valueLength │ key │ value │
///     └───────────┴─────────────┴─────┴───────┘
///
/// Writes keep no index. The first read scans the file, which no measured row does: reads only
/// check what was written.
struct RawRecords {
  static let headerByteCount = 8

  private let file: Int32
  private let path: String
  private var places: [[UInt8]: Range<Int>] = [:]
  private var readOffset = 0

  init(file: Int32, path: String) {
    self.file = file
    self.path = path
  }

  /// The header, in the order of its bytes in memory.
  @inline(__always)
  static func header(_ key: RawSpan, _ value: RawSpan) -> UInt64 {
    UInt64(UInt32(key.byteCount)).littleEndian
      | UInt64(UInt32(value.byteCount)).littleEndian << 32
  }

  /// The value of the key's last record before `endOffset`.
  mutating func value(forKey key: RawSpan, endOffset: Int) throws -> [UInt8]? {
    while readOffset < endOffset { try readPlace() }
    let key = unsafe key.withUnsafeBytes { unsafe [UInt8]($0) }
    guard let place = places[key] else { return nil }
    return try read(place)
  }

  private mutating func readPlace() throws {
    let header = try read(readOffset..<(readOffset + Self.headerByteCount))
    let keyLength = Int(Self.number(header[..<4]))
    let valueLength = Int(Self.number(header[4...]))
    let keyOffset = readOffset + Self.headerByteCount
    let valueOffset = keyOffset + keyLength
    places[try read(keyOffset..<valueOffset)] = valueOffset..<(valueOffset + valueLength)
    readOffset = valueOffset + valueLength
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
  }

  private func read(_ range: Range<Int>) throws -> [UInt8] {
    // SAFETY: `pread` gets the rest of the buffer, and only the bytes that it filled count.
    try unsafe [UInt8](unsafeUninitializedCapacity: range.count) { buffer, filled in
      while filled < range.count {
        let rest = unsafe UnsafeMutableBufferPointer(rebasing: buffer[filled..<range.count])
        let count = unsafe pread(file, rest.baseAddress, rest.count, range.lowerBound + filled)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { throw BenchFailure.lastSystemError("pread", path) }
        filled += count
      }
    }
  }

  /// Creates the directory and an empty file in it.
  static func makeFile(in directory: String) throws -> (file: Int32, path: String) {
    // SAFETY: the paths are passed as strings that outlive the calls.
    if unsafe mkdir(directory, 0o700) != 0, errno != EEXIST {
      throw BenchFailure.lastSystemError("mkdir", directory)
    }
    let path = directory + "/records"
    let file = unsafe open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw BenchFailure.lastSystemError("open", path) }
    return (file, path)
  }
}
