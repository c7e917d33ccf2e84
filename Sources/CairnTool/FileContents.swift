/// Reading a file to its end, whatever its size was said to be.
enum FileContents {
  private static let chunkByteCount = 256 * 1024

  /// Reads what is there until the end of the file, or returns `nil` where that is more than
  /// `byteLimit`. A file of the expected size takes one allocation.
  static func read(
    _ descriptor: Descriptor, expecting byteCount: Int, byteLimit: Int
  ) throws(SystemError) -> [UInt8]? {
    // One byte more than expected, so that the first read also finds the end.
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
