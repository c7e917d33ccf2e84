import CCairn
import Cairn
import CairnLibC

/// The upper bound for a store that writes through a mapping: copies every key and value into one
/// preallocated mapped file, one after the other, and does nothing else. Touches pages for the
/// first time, like a growing store.
// SAFETY: `@unchecked Sendable` because the benchmark lets no other thread use it during a write.
// The pointer is to a mapping that lives until `close`; writes are checked to fit.
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
    _ = CairnLibC.close(file)
  }
}
