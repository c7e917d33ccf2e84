import CCairn
import Cairn
import Glibc

/// What memory allows a store that writes through a mapping: every key and value is copied into
/// one preallocated mapped file, behind the one before, and nothing else. Pages are touched for
/// the first time, as they are by a store that grows.
// SAFETY: `@unchecked Sendable` since the benchmark lets no thread use it beside one that writes.
// The pointer is to a mapping that lives until `close`; what is written is checked to fit.
@safe
final class RawCopyStore: KeyValueStore, @unchecked Sendable {
  static let name = StoreKind.rawCopy.rawValue
  static let abilities: StoreAbilities = []

  private let file: Int32
  private let mapping: UnsafeMutableRawPointer
  private let byteCount: Int
  private var endOffset = 0
  private var records: RawRecords

  init(at path: String, options: StoreOptions) throws {
    let (file, path) = try RawRecords.makeFile(in: path)
    self.file = file
    records = RawRecords(file: file, path: path)
    byteCount =
      options.expectedByteCount + RawRecords.headerByteCount * options.expectedKeyCount
      + 1 << 20
    guard cairn_fallocate(file, 0, Int64(byteCount)) == 0 else {
      throw BenchFailure.lastSystemError("fallocate", path)
    }
    let address = unsafe mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
    guard let address = unsafe address, unsafe address != MAP_FAILED else {
      throw BenchFailure.lastSystemError("mmap", path)
    }
    unsafe mapping = unsafe address
  }

  func value(forKey key: RawSpan) throws -> [UInt8]? {
    try records.value(forKey: key, endOffset: endOffset)
  }

  func setValue(_ value: RawSpan, forKey key: RawSpan) throws {
    let count = RawRecords.headerByteCount + key.byteCount + value.byteCount
    guard endOffset + count <= byteCount else {
      throw BenchFailure.unsuited("\(Self.name): its mapping is full")
    }
    let record = unsafe UnsafeMutableRawBufferPointer(start: mapping + endOffset, count: count)
    let header = RawRecords.header(key, value)
    unsafe record.storeBytes(of: header, as: UInt64.self)
    let valueOffset = RawRecords.headerByteCount + key.byteCount
    unsafe key.withUnsafeBytes {
      unsafe UnsafeMutableRawBufferPointer(
        rebasing: record[RawRecords.headerByteCount..<valueOffset]
      ).copyMemory(from: $0)
    }
    unsafe value.withUnsafeBytes {
      unsafe UnsafeMutableRawBufferPointer(rebasing: record[valueOffset...]).copyMemory(from: $0)
    }
    endOffset += count
  }

  func removeValue(forKey key: RawSpan) throws -> Bool {
    throw BenchFailure.unsuited("\(Self.name) removes nothing")
  }

  func close() throws {
    unsafe munmap(mapping, byteCount)
    _ = Glibc.close(file)
  }
}
