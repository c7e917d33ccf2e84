import CCairn
import Cairn
import CairnLibC

/// The upper bound for a store that writes by system calls: passes every key and value to one call,
/// one after the other, and does nothing else.
///
/// With `.process` it uses `write(2)` (as `writev(2)`, so that nothing is copied first) on a file
/// that grows; with `.durable`, `pwrite(2)` into preallocated space, and `fdatasync(2)`.
// SAFETY: `@unchecked Sendable` because the benchmark lets no other thread use it during a write.
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
          // SAFETY: the three parts are contiguous and point to bytes that outlive the call.
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
    // DURABILITY: the put may be acknowledged only after this sync.
    if syncs, fdatasync(file) != 0 { throw BenchFailure.lastSystemError("fdatasync", path) }
    endOffset += count
  }

  func removeValue(forKey key: RawSpan) throws -> Bool {
    throw BenchFailure.unsuited("\(Self.name) removes nothing")
  }

  func close() throws { _ = CairnLibC.close(file) }
}

extension iovec {
  /// Bytes for reading only.
  @inline(__always)
  fileprivate init(_ bytes: UnsafeRawBufferPointer) {
    unsafe self.init(
      iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
  }
}
