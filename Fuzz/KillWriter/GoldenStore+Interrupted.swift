import CairnLibC
import CairnStore
import FuzzSupport

extension GoldenStore {
  /// How far a compaction or a backup had got when its process died.
  package enum Moment: String {
    /// The output has its name but is not yet part of the log.
    case compacting
    /// The output is part of the log, and the replaced segments still exist.
    case compacted
    /// All of a backup exists except its manifest.
    case copying
  }

  /// The additional contents of the stores of interrupted compactions.
  package static let entriesMeanwhile: [String: Expected] = {
    var entries: [String: Expected] = [:]
    for number in 0..<30 { entries["meanwhile \(number)"] = Expected(byteCount: 3000) }
    return entries
  }()

  /// Left by a batch that was not finished.
  package static let keysOfHalfBatch = ["half a batch", "the other half"]

  /// Writes a store whose process died during a compaction, while the log continued in two open
  /// segments and ended with half a batch. With `.copying`, the store is the unfinished copy of a backup.
  static func writeInterrupted(path: String, at moment: Moment) throws {
    let disk = SimulatedDisk()
    let process = SimulatedProcess.start(on: disk, seed: 1)
    try begin(process.open(goldenConfiguration))
    let store = try process.reopen(goldenConfiguration)
    try end(store)
    let known = Set(disk.names(at: SimulatedProcess.path))
    var image: SimulatedDisk?
    var isWritten = false
    var synced: Set<String> = []
    let copy = "/copy"
    process.fileSystem.intervene = { [fileSystem = process.fileSystem] call in
      let name = fileSystem.currentPath?.split(separator: "/").last.map(String.init) ?? ""
      if moment == .copying {
        if disk.contents(of: "\(copy)/\(FileName.unfinishedCopy)") != nil { image = disk.settled() }
        return nil
      }
      guard image == nil, FileName.isSegment(name) else { return nil }
      if call == .synchronize, !known.contains(name) { synced.insert(name) }
      // The log continues in the first new segment; the second is the compaction's output.
      if synced.count == 2, !isWritten {
        isWritten = true
        // The checkpoint's manifest lists the output as pending.
        let error = storeError { try writeMeanwhile(to: store, checkpoint: moment == .compacting) }
        if let error { fail("\(error)") }
        if moment == .compacting { image = disk.settled() }
      }
      if call == .unlink, known.contains(name), moment == .compacted { image = disk.settled() }
      return image == nil ? nil : .die
    }
    switch moment {
    case .compacting, .compacted: _ = try? store.compact()
    case .copying: _ = try? store.backup(to: copy)
    }
    guard let image else { fail("the compaction or backup ended too early") }
    let source = moment == .copying ? copy : SimulatedProcess.path
    require(unsafe mkdir(path, 0o700) == 0, "mkdir")
    for name in image.names(at: source) {
      guard var bytes = image.contents(of: "\(source)/\(name)") else { continue }
      if let last = bytes.firstRange(of: Array(keysOfHalfBatch[1].utf8)) {
        for index in last.upperBound..<min(bytes.count, last.upperBound + 600) { bytes[index] = 0 }
      }
      try write(bytes, to: "\(path)/\(name)")
    }
  }

  private static func writeMeanwhile(to store: Store, checkpoint: Bool) throws {
    for number in 0..<30 {
      try store.setValue(
        value("meanwhile \(number)", byteCount: 3000), forKey: "meanwhile \(number)")
    }
    if checkpoint { try store.checkpoint() }
    try store.write { batch in
      for key in keysOfHalfBatch { try batch.setValue(value(key, byteCount: 600), forKey: key) }
    }
  }

  private static func write(_ bytes: [UInt8], to path: String) throws {
    let file = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    require(file >= 0, "open")
    defer { close(file) }
    let count = unsafe bytes.withUnsafeBytes {
      unsafe CairnLibC.write(file, $0.baseAddress, $0.count)
    }
    require(count == bytes.count, "write")
  }
}
