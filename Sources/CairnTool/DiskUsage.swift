import Cairn

/// The disk usage of a store's files, as `du` counts it: blocks, including those of the directory.
struct DiskUsage {
  /// Bytes on disk of the segments.
  private(set) var segmentByteCount = 0
  /// Bytes on disk of everything else: checkpoints, the manifest, the reserve, the lock, the
  /// directory, the quarantine.
  private(set) var otherByteCount = 0
  /// The number of files other than segments.
  private(set) var otherFileCount = 0
  /// The total length of the segments' files, allocated or not.
  private(set) var segmentLength = 0
  /// Free bytes on the disk, or `nil` if the number is unknown.
  private(set) var freeByteCount: Int?

  /// When the newest checkpoint was written, or `nil` if there is none.
  private(set) var checkpointTime: Timestamp?

  /// Whether the disk has less room than a compaction may need.
  var isDiskNearlyFull: Bool { (freeByteCount ?? .max) < StoreConfiguration().segmentByteLimit }

  var byteCount: Int { segmentByteCount + otherByteCount }

  /// Measures the files, as far as they can be read.
  init(_ location: StoreLocation) {
    if let directory = try? SystemCalls.open(
      [UInt8](location.path.utf8), in: nil, as: .directoryThroughLinks)
    {
      add(directory, isStore: true)
      freeByteCount = try? SystemCalls.freeByteCount(of: directory)
    }
  }

  private mutating func add(_ directory: Descriptor, isStore: Bool) {
    otherByteCount += (try? SystemCalls.status(of: directory))?.allocatedByteCount ?? 0
    for name in (try? SystemCalls.names(in: directory)) ?? [] {
      guard let status = try? SystemCalls.status(of: name.bytes, in: directory) else { continue }
      if status.kind == .directory {
        // The only folder in a store is quarantine, which contains no folders.
        guard isStore,
          let folder = try? SystemCalls.open(name.bytes, in: directory, as: .directory)
        else { continue }
        add(folder, isStore: false)
      } else if isStore, name.bytes.starts(with: "seg-".utf8) {
        segmentByteCount += status.allocatedByteCount
        let (sum, isTooLarge) = segmentLength.addingReportingOverflow(status.byteCount)
        segmentLength = isTooLarge ? .max : sum
      } else {
        otherByteCount += status.allocatedByteCount
        otherFileCount += 1
        if isStore, name.bytes.starts(with: "ckpt-".utf8) {
          checkpointTime = max(checkpointTime ?? status.modified, status.modified)
        }
      }
    }
  }
}
