import CairnEssentials
import CairnLibC
import CairnStore

/// The files of a directory with their bytes: the state of a store if its process had died now, or
/// a state that a test has made from it.
struct Image: Sendable, Equatable {
  var files: [String: [UInt8]] = [:]

  init() {}

  /// Reads the regular files of a directory.
  init(of path: String) throws {
    for name in try FileManager.default.contentsOfDirectory(atPath: path) {
      let full = "\(path)/\(name)"
      let type = try FileManager.default.attributesOfItem(atPath: full)[.type] as? FileAttributeType
      if type == .typeRegular { files[name] = try readFile(full) }
    }
  }

  /// Makes a directory with these files.
  func write(to path: String) throws {
    if !FileManager.default.fileExists(atPath: path) {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    }
    for (name, bytes) in files { try writeFile("\(path)/\(name)", bytes) }
  }

  /// The image of a closed store without preallocated space that does not count: the space for the
  /// next manifest, and for removals and compactions on a full disk.
  func withoutReserves() throws -> Image {
    var image = self
    image.files["MANIFEST.new"] = nil
    image.files["MANIFEST.next"] = nil
    image.files["RESERVE"] = nil
    let manifest = try manifest
    let lengths =
      manifest.openSegments.map { ($0.id, $0.byteCount) }
      + manifest.sealedSegments.map { ($0.id, $0.byteCount) }
    for (id, length) in lengths {
      let name = FileName.segment(id)
      if let bytes = files[name] { image.files[name] = Array(bytes.prefix(length)) }
    }
    return image
  }

  /// The names of the segments, in the order of their ids.
  var segmentNames: [String] { files.keys.filter { $0.hasPrefix("seg-") }.sorted() }

  /// The manifest, decoded.
  var manifest: Manifest {
    get throws {
      guard let bytes = files["MANIFEST"] else {
        throw SupportError(call: "no MANIFEST", number: 0)
      }
      return try Manifest(decoding: bytes.rawSpan)
    }
  }

  /// The image with the manifest changed and its checksum corrected.
  func changingManifest(_ change: (inout Manifest) -> Void) throws -> Image {
    var manifest = try manifest
    change(&manifest)
    var image = self
    image.files["MANIFEST"] = manifest.encoded()
    return image
  }

  /// A record and its place.
  struct PlacedRecord: Sendable {
    var offset: Int
    var header: RecordHeader
    var key: [UInt8]
    var range: Range<Int> { offset..<(offset + header.byteCount) }
    /// The bytes that the header checksum covers, or the checksum itself.
    var headRange: Range<Int> { offset..<(offset + header.headByteCount) }
    var valueRange: Range<Int> {
      (offset + header.valueRange.lowerBound)..<(offset + header.valueRange.upperBound)
    }
    var paddingRange: Range<Int> { valueRange.upperBound..<range.upperBound }
  }

  /// The valid records from the start of a segment to the first bytes that are not one.
  func records(in segment: String) throws -> [PlacedRecord] {
    guard let bytes = files[segment] else { throw SupportError(call: "no \(segment)", number: 0) }
    // If a process was killed, a file may have no header yet.
    if bytes.count < SegmentHeader.byteCount { return [] }
    let span = bytes.rawSpan
    let header = try SegmentHeader(
      decoding: span.extracting(0..<SegmentHeader.byteCount), file: segment)
    var records: [PlacedRecord] = []
    var offset = SegmentHeader.byteCount
    while offset < span.byteCount {
      let rest = span.extracting(offset..<span.byteCount)
      guard let record = RecordHeader(decoding: rest, limit: rest.byteCount),
        record.hasValidChecksum(rest, at: offset, seed: header.recordSeed)
      else { break }
      records.append(
        PlacedRecord(
          offset: offset, header: record, key: rest.extracting(record.keyRange).copied()))
      offset += record.byteCount
      if record.kind == .roll { break }
    }
    return records
  }

  /// The image with bytes of a file changed.
  func changing(_ file: String, _ change: (inout [UInt8]) -> Void) -> Image {
    var image = self
    change(&image.files[file, default: []])
    return image
  }

  /// The image with one bit of a file flipped.
  func flipping(_ file: String, at offset: Int, bit: Int = 0) -> Image {
    changing(file) { $0[offset] ^= 1 << UInt8(bit) }
  }
}

func readFile(_ path: String) throws -> [UInt8] {
  [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
}

/// Writes a file in place, mode 0600.
func writeFile(_ path: String, _ bytes: [UInt8]) throws {
  let file = try check("open", unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600))
  defer { close(file) }
  try overwrite(file, bytes, at: 0)
}

/// Overwrites bytes of a file that may be in use.
func overwriteFile(_ path: String, _ bytes: [UInt8], at offset: Int) throws {
  let file = try check("open", unsafe open(path, O_WRONLY | O_CLOEXEC))
  defer { close(file) }
  try overwrite(file, bytes, at: offset)
}

private func overwrite(_ file: Int32, _ bytes: [UInt8], at offset: Int) throws {
  var done = 0
  while done < bytes.count {
    // SAFETY: the pointer is used for the call only, within the array's bounds.
    done += try check(
      "pwrite",
      unsafe bytes.withUnsafeBytes { buffer in
        unsafe pwrite(
          file, buffer.baseAddress.map { unsafe $0 + done }, buffer.count - done,
          off_t(offset + done))
      })
  }
}

/// All outward properties of a directory's files: names, modes, sizes, times and bytes.
struct DirectoryListing: Equatable {
  struct Item: Equatable {
    var mode: UInt32
    var size: Int
    var seconds: Int
    var nanoseconds: Int
    var inode: UInt64
    var bytes: [UInt8]
  }
  var items: [String: Item] = [:]

  init(of path: String) throws {
    for name in try FileManager.default.subpathsOfDirectory(atPath: path) + ["."] {
      var status = stat()
      try check("stat", unsafe stat("\(path)/\(name)", &status))
      let isFile = status.st_mode & S_IFMT == S_IFREG
      items[name] = Item(
        mode: UInt32(status.st_mode), size: Int(status.st_size), seconds: status.st_mtim.tv_sec,
        nanoseconds: status.st_mtim.tv_nsec, inode: UInt64(status.st_ino),
        bytes: isFile ? try readFile("\(path)/\(name)") : [])
    }
  }
}
