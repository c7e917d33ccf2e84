import CCairn
import Cairn
import CairnLibC

/// The upper bound of the machine: a flat hash table over records in one preallocated mapped file,
/// with a checksum verified on every read and nothing else. No locks, no recovery, no space reuse.
///
/// The table uses open addressing with linear probing over 16-byte entries, and is never more than
/// half full:
///
///     0        8        16
///     ┌────────┬────────┐   hash: of the key
///     │ hash   │ offset │   offset: of the record in the file; 0 empty, 1 removed
///     └────────┴────────┘
///
/// A record, at a multiple of 8:
///
///     0          4           8             12    12 + keyLength
///     ┌──────────┬───────────┬─────────────┬─────┬───────┐
///     │ checksum │ keyLength │ valueLength │ key │ value │   CRC32C of all that follows it
///     └──────────┴───────────┴─────────────┴─────┴───────┘
///
// SAFETY: `@unchecked Sendable` because the benchmark lets no thread write while others use it. The
// pointers are to mappings that live until `close`; offsets come only from the table, which only
// `setValue` fills, with completely written records.
@safe
final class ReferenceStore: KeyValueStore, @unchecked Sendable {
  static let name = "bare-map"
  static let abilities: StoreAbilities = [.zeroCopyReads]

  private struct Entry {
    var hash: UInt64
    var offset: Int
  }

  private static let reservedByteCount = 64 << 30
  private static let growthByteCount = 256 << 20
  private static let headerByteCount = 12
  private static let emptyOffset = 0
  private static let removedOffset = 1

  private let file: Int32
  private let records: UnsafeMutableRawPointer
  private let table: UnsafeMutablePointer<Entry>
  private let tableMask: Int
  private var usedEntryCount = 0
  private var allocatedByteCount = 0
  private var endOffset = 8

  init(at path: String, options: StoreOptions) throws {
    guard cairn_crc32c_is_supported() else {
      throw BenchFailure.unsuited("bare-map needs a processor with CRC32C instructions")
    }
    if unsafe mkdir(path, 0o700) != 0, errno != EEXIST {
      throw BenchFailure.lastSystemError("mkdir", path)
    }
    let name = path + "/records"
    file = unsafe open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw BenchFailure.lastSystemError("open", name) }
    // The file grows inside the mapping. Pages beyond the file's end are not touched.
    guard
      let records = unsafe Self.map(
        Self.reservedByteCount, MAP_SHARED | MAP_NORESERVE, descriptor: file)
    else { throw BenchFailure.lastSystemError("mmap", name) }
    unsafe self.records = unsafe records
    var capacity = 1 << 10
    while capacity < 2 * options.expectedKeyCount { capacity *= 2 }
    tableMask = capacity - 1
    let tableByteCount = capacity * MemoryLayout<Entry>.stride
    guard
      let table = unsafe Self.map(tableByteCount, MAP_PRIVATE | MAP_ANONYMOUS, descriptor: -1)
    else { throw BenchFailure.lastSystemError("mmap", name) }
    unsafe self.table = unsafe table.bindMemory(to: Entry.self, capacity: capacity)
    // Includes room for the headers and paddings.
    try grow(to: options.expectedByteCount + 20 * options.expectedKeyCount + 1)
  }

  private static func map(
    _ byteCount: Int, _ flags: Int32, descriptor: Int32
  ) -> UnsafeMutableRawPointer? {
    let address = unsafe mmap(nil, byteCount, PROT_READ | PROT_WRITE, flags, descriptor, 0)
    return unsafe address == MAP_FAILED ? nil : address
  }

  // MARK: Reading

  @inline(__always)
  func withValue<R>(forKey key: RawSpan, _ body: (RawSpan) throws -> R) throws -> R? {
    let position = self.position(of: key, hash: hash(of: key))
    let offset = unsafe table[position].offset
    guard offset > Self.removedOffset else { return nil }
    let record = unsafe records + offset
    let valueLength = Int(unsafe record.load(fromByteOffset: 8, as: UInt32.self))
    let bodyByteCount = Self.headerByteCount - 4 + key.byteCount + valueLength
    let stored = unsafe record.load(as: UInt32.self)
    guard unsafe cairn_crc32c(.max, record + 4, bodyByteCount) == stored else {
      throw BenchFailure.unsuited("bare-map: the checksum at \(offset) does not match")
    }
    let value = unsafe UnsafeRawBufferPointer(
      start: record + Self.headerByteCount + key.byteCount, count: valueLength)
    return try body(unsafe RawSpan(_unsafeBytes: value))
  }

  func value(forKey key: RawSpan) throws -> [UInt8]? {
    try withValue(forKey: key) { value in
      unsafe value.withUnsafeBytes { unsafe [UInt8]($0) }
    }
  }

  /// The place of the key's entry, or of the empty entry at which the search ended.
  @inline(__always)
  private func position(of key: RawSpan, hash: UInt64) -> Int {
    var position = Int(truncatingIfNeeded: hash) & tableMask
    while true {
      let entry = unsafe table[position]
      if entry.offset == Self.emptyOffset { return position }
      if entry.hash == hash, entry.offset != Self.removedOffset,
        isKey(key, ofRecordAt: entry.offset)
      {
        return position
      }
      position = (position + 1) & tableMask
    }
  }

  @inline(__always)
  private func isKey(_ key: RawSpan, ofRecordAt offset: Int) -> Bool {
    let record = unsafe records + offset
    guard unsafe record.load(fromByteOffset: 4, as: UInt32.self) == UInt32(key.byteCount) else {
      return false
    }
    return unsafe key.withUnsafeBytes { bytes in
      unsafe memcmp(
        record + Self.headerByteCount, bytes.baseAddress ?? UnsafeRawPointer(record), bytes.count)
        == 0
    }
  }

  /// Folded multiplications of 64 by 64 bits, one per word and one at the end: good enough, and
  /// nearly free.
  @inline(__always)
  private func hash(of key: RawSpan) -> UInt64 {
    unsafe key.withUnsafeBytes { bytes in
      var state: UInt64 = 0x9E37_79B9_7F4A_7C15 ^ UInt64(bytes.count)
      var offset = 0
      while offset < bytes.count {
        let left = bytes.count - offset
        var word: UInt64 = 0
        if left >= 8 {
          word = unsafe bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        } else {
          for index in 0..<left { word |= UInt64(unsafe bytes[offset + index]) << (8 * index) }
        }
        let product = (state ^ word).multipliedFullWidth(by: 0xD6E8_FEB8_6659_FD93)
        state = product.low ^ product.high
        offset += 8
      }
      let product = state.multipliedFullWidth(by: 0xA076_1D64_78BD_642F)
      return product.low ^ product.high
    }
  }

  // MARK: Writing

  func setValue(_ value: RawSpan, forKey key: RawSpan) throws {
    let byteCount = Self.headerByteCount + key.byteCount + value.byteCount
    let offset = endOffset
    let nextOffset = (offset + byteCount + 7) & ~7
    if nextOffset > allocatedByteCount { try grow(to: nextOffset) }
    let hash = self.hash(of: key)
    let position = self.position(of: key, hash: hash)
    let isNew = unsafe table[position].offset == Self.emptyOffset
    guard !isNew || 2 * (usedEntryCount + 1) <= tableMask + 1 else {
      throw BenchFailure.unsuited("bare-map: more keys than it was opened for")
    }
    let record = unsafe records + offset
    unsafe record.storeBytes(of: UInt32(key.byteCount), toByteOffset: 4, as: UInt32.self)
    unsafe record.storeBytes(of: UInt32(value.byteCount), toByteOffset: 8, as: UInt32.self)
    let room = unsafe UnsafeMutableRawBufferPointer(
      start: record + Self.headerByteCount, count: key.byteCount + value.byteCount)
    unsafe key.withUnsafeBytes { unsafe room.copyMemory(from: $0) }
    unsafe value.withUnsafeBytes {
      unsafe UnsafeMutableRawBufferPointer(rebasing: room[key.byteCount...]).copyMemory(from: $0)
    }
    unsafe record.storeBytes(
      of: cairn_crc32c(.max, record + 4, byteCount - 4), as: UInt32.self)
    unsafe table[position] = Entry(hash: hash, offset: offset)
    if isNew { usedEntryCount += 1 }
    endOffset = nextOffset
  }

  func removeValue(forKey key: RawSpan) throws -> Bool {
    let position = self.position(of: key, hash: hash(of: key))
    guard unsafe table[position].offset != Self.emptyOffset else { return false }
    unsafe table[position].offset = Self.removedOffset
    return true
  }

  private func grow(to byteCount: Int) throws {
    let steps = (byteCount - allocatedByteCount + Self.growthByteCount - 1) / Self.growthByteCount
    let added = steps * Self.growthByteCount
    guard allocatedByteCount + added <= Self.reservedByteCount else {
      throw BenchFailure.unsuited("bare-map: its mapping is full")
    }
    guard cairn_fallocate(file, Int64(allocatedByteCount), Int64(added)) == 0 else {
      throw BenchFailure.lastSystemError("fallocate", "records")
    }
    allocatedByteCount += added
  }

  func close() throws {
    unsafe munmap(records, Self.reservedByteCount)
    unsafe munmap(table, (tableMask + 1) * MemoryLayout<Entry>.stride)
    _ = CairnLibC.close(file)
  }
}
