import CairnStore

/// The place of the process's next call.
extension SimulatedFileSystem {
  /// The name of the segment that the call is for.
  private var segmentName: String? {
    currentPath?.split(separator: "/").last.map(String.init).flatMap {
      FileName.isSegment($0) ? $0 : nil
    }
  }

  /// Whether the call is for a segment that a compaction wrote. A new segment of the log has no
  /// records yet when it is synced as a whole.
  var isAtOutputOfCompaction: Bool {
    guard segmentName != nil, let path = currentPath, let bytes = disk.contents(of: path) else {
      return false
    }
    return bytes.dropFirst(SegmentHeader.byteCount).contains { $0 != 0 }
  }

  /// Whether the call is for a segment that the manifest lists as sealed. Reads of such a segment
  /// hold no lock that a write needs.
  var isAtSealedSegment: Bool {
    guard let segmentName,
      let bytes = disk.contents(of: "\(SimulatedProcess.path)/\(FileName.manifest)"),
      let manifest = try? Manifest(decoding: bytes.rawSpan)
    else { return false }
    return manifest.sealedSegments.contains { FileName.segment($0.id) == segmentName }
  }
}
