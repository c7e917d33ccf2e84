import CCairn
import Cairn
import Glibc

/// What the system's calls allow a store that writes through them: every key and value is handed
/// to one call, behind the one before, and nothing else.
///
/// With `.process` it is `write(2)` (as `writev(2)`, so that nothing is copied first) to a file
/// that grows; with `.durable` it is `pwrite(2)` into a file with space allocated ahead, and
/// `fdatasync(2)`.
// SAFETY: `@unchecked Sendable` since the benchmark lets no thread use it beside one that writes.
final class RawWriteStore: KeyValueStore, @unchecked Sendable {
  static let name = StoreKind.rawWrite.rawValue
  static let abilities: StoreAbilities = [.durableWrites]

  private static let allocationByteCount = 64 << 20

  private let file: Int32
  private let path: String
  private let syncs: Bool
  private var endOffset = 0
  private var allocatedByteCount = 0
  private var records: RawRecords

  init(at path: String, options: StoreOptions) throws {
    (file, self.path) = try RawRecords.makeFile(in: path)
    records = RawRecords(file: file, path: self.path)
    syncs = options.durability != .process
    if syncs { try allocate(1) }
  }

  private func allocate(_ byteCount: Int) throws {
    while allocatedByteCount < endOffset + byteCount {
      let added = Self.allocationByteCount
      guard cairn_fallocate(file, Int64(allocatedByteCount), Int64(added)) == 0 else {
        throw BenchFailure.lastSystemError("fallocate", path)
      }
      allocatedByteCount += added
    }
  }

  func value(forKey key: RawSpan) throws -> [UInt8]? {
    try records.value(forKey: key, endOffset: endOffset)
  }

  func setValue(_ value: RawSpan, forKey key: RawSpan) throws {
    let count = RawRecords.headerByteCount + key.byteCount + value.byteCount
    if syncs { try allocate(count) }
    let offset = endOffset
    let header = RawRecords.header(key, value)
    let written = unsafe withUnsafeBytes(of: header) { header in
      unsafe key.withUnsafeBytes { key in
        unsafe value.withUnsafeBytes { value in
          var parts = unsafe (iovec(header), iovec(key), iovec(value))
          // SAFETY: the three lie side by side and name bytes that outlive the call.
          return unsafe withUnsafeBytes(of: &parts) { parts in
            let parts = unsafe parts.assumingMemoryBound(to: iovec.self)
            return syncs
              ? unsafe pwritev(file, parts.baseAddress, 3, offset)
              : unsafe writev(file, parts.baseAddress, 3)
          }
        }
      }
    }
    guard written == count else {
      if written < 0 { throw BenchFailure.lastSystemError("write", path) }
      throw BenchFailure.unsuited("\(Self.name): \(written) of \(count) bytes were written")
    }
    // DURABILITY: only then may the put be acknowledged.
    if syncs, fdatasync(file) != 0 { throw BenchFailure.lastSystemError("fdatasync", path) }
    endOffset += count
  }

  func removeValue(forKey key: RawSpan) throws -> Bool {
    throw BenchFailure.unsuited("\(Self.name) removes nothing")
  }

  func close() throws { _ = Glibc.close(file) }
}

extension iovec {
  /// Bytes that are only read.
  @inline(__always)
  fileprivate init(_ bytes: UnsafeRawBufferPointer) {
    unsafe self.init(
      iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
  }
}
