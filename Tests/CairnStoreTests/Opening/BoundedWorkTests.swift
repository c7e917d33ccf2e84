import CairnEssentials
import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

/// Directories that somebody made odd on purpose, or that accidents made odd: the work stays
/// proportional to the bytes that are there.
@Suite("Odd directories cost little")
struct BoundedWorkTests {
  private final class Counter: Sendable {
    let count = Atomic(0)
    func add() -> Int { count.add(1, ordering: .relaxed).newValue }
  }

  /// An open, a check or a salvage read a terabyte of nothing, for an hour.
  @Test("An open segment that was extended by a hole", arguments: [nil, otherBoot], [false, true])
  func hole(boot: [UInt8]?, hasEnd: Bool) throws {
    let killed = try KilledStore { store in
      for number in 0..<20 { try store.setValue("value", forKey: "key\(number)") }
    }
    let directory = try TemporaryDirectory()
    try killed.image.write(to: directory.store)
    let name = try killed.lastSegment
    let path = "\(directory.store)/\(name)"
    let byteCount = 1 << 36
    try check("truncate", unsafe truncate(path, off_t(byteCount)))
    if hasEnd { try overwriteFile(path, [1], at: byteCount - 1) }

    let system = FaultyFileSystem(bootIdentifier: boot)
    let reads = Counter()
    system.setHook { $0.call == .read && $0.file == name && reads.add() > 1000 ? ENOMEM : nil }
    let environment = Environment(fileSystem: system, background: ManualBackgroundQueue())
    #expect(try Store.verify(path: directory.store, environment: environment).errors == [])
    let report = try Store.salvage(
      path: directory.store, to: directory("copy"), environment: environment,
      segmentByteLimit: 64 << 10)
    #expect(report.entryCount == 20)
    for readOnly in [true, false] {
      let store = try Store(
        directory.store, .small(), fileSystem: system, background: ManualBackgroundQueue(),
        readOnly: readOnly)
      #expect(try store.contents() == killed.after)
      try store.close()
    }
  }

  /// Each cost a folder, a listing, a rename and a sync.
  @Test("Many segments that the manifest does not list")
  func unlisted() throws {
    let directory = try TemporaryDirectory()
    let store = try Store(directory.store, .small())
    try store.setValue("value", forKey: "key")
    try store.close()
    var image = try Image(of: directory.store).changingManifest { $0.nextID = 10_000 }
    image.files["MANIFEST.next"] = nil
    try image.write(to: directory.store)
    for number in 1000..<1300 as Range<UInt64> {
      try writeFile("\(directory.store)/\(FileName.segment(SegmentID(rawValue: number)))", [])
    }
    let system = FaultyFileSystem()
    let calls = Counter()
    system.setHook { event in
      if [.makeDirectory, .synchronize].contains(event.call) { _ = calls.add() }
      return nil
    }
    let messages = Collected<String>()
    let again = try Store(
      directory.store, .small { $0.log = DiagnosticLog { messages.add($0.text) } },
      fileSystem: system)
    #expect(try again.statistics().recovery.quarantinedFiles.count == 300)
    #expect(messages.all.count == 11 && messages.all.last == "and so are 290 others")
    #expect(try again.contents().count == 1)
    #expect(calls.count.load(ordering: .relaxed) < 20)
    try again.close()
    let moved = try FileManager.default.contentsOfDirectory(
      atPath: "\(directory.store)/quarantine")
    #expect(moved.count == 300)
  }
}
