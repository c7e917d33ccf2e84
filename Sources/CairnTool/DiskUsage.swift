import Cairn

/// What the files of a store take, as `du` counts it: blocks, those of the directory too.
struct DiskUsage {
  /// Bytes on disk of the segments.
  private(set) var segmentByteCount = 0
  /// Bytes on disk of all else: checkpoints, the manifest, the reserve, the lock, the directory, what is in
  /// quarantine.
  private(set) var otherByteCount = 0
  /// How many files these are.
  private(set) var otherFileCount = 0
  /// How long the segments' files are, allocated or not.
  private(set) var segmentLength = 0
  /// Bytes that the disk has free; `nil` where that is not known.
  private(set) var freeByteCount: Int?

  /// When the newest checkpoint was written; `nil`: there is none.
  private(set) var checkpointTime: Timestamp?

  /// Whether the disk has less room than a compaction may take.
  var isDiskNearlyFull: Bool { (freeByteCount ?? .max) < StoreConfiguration().segmentByteLimit }

  var byteCount: Int { segmentByteCount + otherByteCount }

  /// Looks at the files that are there, as far as they can be looked at.
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
        // Only quarantine is one, and there is none in it.
        guard isStore,
          let folder = try? SystemCalls.open(name.bytes, in: directory, as: .directory)
        else { continue }
        add(folder, isStore: false)
      } else if isStore, name.bytes.starts(with: "seg-".utf8) {
        segmentByteCount += status.allocatedByteCount
        segmentLength += status.byteCount
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
