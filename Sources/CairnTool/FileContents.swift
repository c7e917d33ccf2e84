/// Reads a file to its end, whatever its reported size.
enum FileContents {
  private static let chunkByteCount = 256 * 1024

  /// Reads until the end of the file, or returns `nil` if the file exceeds `byteLimit`. A file of
  /// the expected size takes one allocation.
  static func read(
    _ descriptor: Descriptor, expecting byteCount: Int, byteLimit: Int
  ) throws(SystemError) -> [UInt8]? {
    // Request one byte more than expected, so that the first read also finds the end.
    let first = max(min(byteCount, byteLimit) + 1, byteCount == 0 ? chunkByteCount : 1)
    var bytes = try SystemCalls.read(descriptor, capacity: first)
    var isAtEnd = bytes.count < first
    while !isAtEnd, bytes.count <= byteLimit {
      let more = try SystemCalls.read(descriptor, capacity: chunkByteCount)
      bytes += more
      isAtEnd = more.count < chunkByteCount
    }
    return bytes.count <= byteLimit ? bytes : nil
  }
}
