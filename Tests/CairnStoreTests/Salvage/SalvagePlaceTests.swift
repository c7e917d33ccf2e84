import CairnEssentials
import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import Testing

/// Where a salvage reads and writes, and what happens when that fails.
@Suite("Salvage: places and failures")
struct SalvagePlaceTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    let store = try Store(directory.store, background: ManualBackgroundQueue())
    for number in 0..<20 {
      try store.setValue([UInt8](repeating: 7, count: 9000), forKey: "key\(number)")
    }
    try store.close()
  }

  private func salvage(
    to path: String, fileSystem: any FileSystem = SystemFileSystem()
  ) throws(StoreError) -> SalvageReport {
    try Store.salvage(
      path: directory.store, to: path,
      environment: Environment(fileSystem: fileSystem, background: ManualBackgroundQueue()),
      segmentByteLimit: 64 << 10)
  }

  @Test("The original stays unchanged: no file, no time, no lock file")
  func originalStays() throws {
    try FileManager.default.removeItem(atPath: "\(directory.store)/LOCK")
    let before = try DirectoryListing(of: directory.store)
    let report = try salvage(to: directory("copy"))
    #expect(try DirectoryListing(of: directory.store) == before)
    #expect(report.kinds == [.notLocked])
    #expect(report.entryCount == 20 && report.isComplete)
  }

  @Test("A salvage is refused while a writer has the store open, but not while a reader does")
  func locked() throws {
    let writer = try Store(directory.store)
    #expect(
      storeError { _ = try salvage(to: directory("copy")) }
        == .locked(path: directory.store, inThisProcess: true))
    #expect(!FileManager.default.fileExists(atPath: directory("copy")))
    try writer.close()
    let reader = try Store(directory.store, readOnly: true)
    _ = try salvage(to: directory("copy"))
    try reader.close()
  }

  @Test("Destinations that are refused, with nothing changed")
  func destinations() throws {
    func isRefused(_ path: String) -> Bool {
      guard case .unusable? = storeError({ _ = try salvage(to: path) }) else {
        return false
      }
      return true
    }
    try FileManager.default.createDirectory(
      atPath: directory("full"), withIntermediateDirectories: false)
    try writeFile(directory("full") + "/file", [1])
    try writeFile(directory("file"), [1])
    try check("symlink", unsafe symlink(directory.store, directory("link")))
    let before = try DirectoryListing(of: directory.path)
    for path in [
      directory.store, directory.store + "/new", directory.store + "/new/",
      directory("link") + "/new", directory("link"), directory("full"), directory("file"),
      directory("full") + "/../store/new",
    ] {
      #expect(isRefused(path), "\(path)")
    }
    #expect(try DirectoryListing(of: directory.path) == before)
    #expect(
      storeError { _ = try Store.salvage(path: directory("none"), to: directory("x")) }
        == .noStore(path: directory("none")))
  }

  @Test("A failure of any call leaves an empty destination and the original unchanged")
  func failures() throws {
    // A failed salvage left files in its destination, and the next attempt then refused it because
    // it was not empty.
    let before = try DirectoryListing(of: directory.store)
    let calls: [FaultyFileSystem.Call] = [
      .open, .write, .truncate, .synchronize, .randomBytes, .rename, .unlink, .allocate,
      .makeDirectoryAtPath,
      .bootIdentifier, .lock, .names, .status,
    ]
    for call in calls {
      for index in 0..<200 {
        let fileSystem = FaultyFileSystem(
          fault: .init(call: call, index: index, errorNumber: ENOSPC))
        let path = directory("copy \(call.rawValue) \(index)")
        let error = storeError { _ = try salvage(to: path, fileSystem: fileSystem) }
        #expect(fileSystem.openDescriptorCount == 0 && fileSystem.mistakes == [])
        if !fileSystem.hasFired {
          #expect(error == nil)
          break
        }
        if error != nil {
          let left = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
          // If the lock was not available, its file may already belong to another store.
          let mayStay = [.lock, .status, .names].contains(call)
          #expect(left == [] || mayStay && left == ["LOCK"], "\(call.rawValue) \(index): \(left)")
        } else {
          // Only preparatory work may fail unnoticed. An unknown boot counts as another one.
          let mayFail = [.allocate, .open, .status, .bootIdentifier].contains(call)
          #expect(mayFail, "\(call.rawValue) \(index)")
          #expect(try Store.verify(path: path).errors == [])
        }
      }
    }
    #expect(try DirectoryListing(of: directory.store) == before)
  }

  @Test("Bytes that the disk cannot read are skipped, and everything around them is copied")
  func unreadable() throws {
    // The read of the header, then windows.
    for index in 0..<12 {
      let fileSystem = FaultyFileSystem(
        fault: .init(call: .read, index: index, errorNumber: EIO))
      let report = try salvage(to: directory("copy\(index)"), fileSystem: fileSystem)
      let copy = try Store(directory("copy\(index)"))
      #expect(try copy.count() == report.entryCount)
      #expect(report.entryCount >= 19 || report.manifest == .damaged)
      for (_, value) in try copy.contents() { #expect(value == [UInt8](repeating: 7, count: 9000)) }
      try copy.close()
    }
  }

  @Test("FIFOs and links in the place of segments are lost files, and nothing waits for them")
  func hostileFiles() throws {
    let names = try Image(of: directory.store).segmentNames
    let fifo = "\(directory.store)/\(names[0])"
    let link = "\(directory.store)/\(names[1])"
    try check("rename", unsafe rename(link, directory("elsewhere")))
    try check("symlink", unsafe symlink(directory("elsewhere"), link))
    try FileManager.default.removeItem(atPath: fifo)
    try check("mkfifo", unsafe mkfifo(fifo, 0o600))
    let report = try salvage(to: directory("copy"))
    #expect(report.losses.map(\.place.cause) == [.unsafeFile, .unsafeFile])
    #expect(report.kinds == [.olderValuesMayBeBack])
    #expect(report.entryCount < 20 && report.entryCount > 0)
  }

  @Test("A reserved segment of any length is read no further than a segment can reach")
  func hugeReservedSegment() async {
    await #expect(processExitsWith: .success) {
      let directory = try TemporaryDirectory()
      let id = SegmentID(rawValue: 2)
      let name = FileName.segment(id)
      let image = try HostileStoreTests.image(isClean: false).changingManifest {
        $0.openSegments.append(.init(id: id, salt: 1, byteCount: 0))
        $0.nextID = 3
      }
      try image.write(to: directory.store)
      try writeFile("\(directory.store)/\(name)", [])
      // Not every filesystem has files of this size.
      guard unsafe truncate("\(directory.store)/\(name)", 1 << 60) == 0 else { return }
      // Reading all of it would take minutes.
      let system = FaultyFileSystem()
      system.setHook { $0.call == .read && $0.file == name ? ENOMEM : nil }
      let error = storeError {
        _ = try Store.salvage(
          path: directory.store, to: directory("copy"),
          environment: Environment(fileSystem: system, background: ManualBackgroundQueue()),
          segmentByteLimit: 64 << 10)
      }
      guard case .system(let failure)? = error, failure.errorNumber == ENOMEM else {
        throw SupportError(call: "\(String(describing: error))", number: 0)
      }
    }
  }

  @Test("More segments than a process may have open files")
  func manySegments() throws {
    var manifest = try Image(of: directory.store).manifest
    for number in 0..<3000 {
      let id = SegmentID(rawValue: 100 + UInt64(number))
      let header = SegmentHeader(
        storeIdentifier: manifest.storeIdentifier, id: id, salt: 5,
        baseSequence: 1000 + UInt64(number), baseTime: 0)
      var record = RecordHeader(kind: .put)
      record.keyByteCount = 4
      var bytes = [UInt8](repeating: 0, count: record.byteCount)
      var key: [UInt8] = []
      key.append(littleEndian: UInt32(number))
      bytes.withMutableSpan { bytes in
        record.encode(key: key.rawSpan, metadata: RawSpan(), value: RawSpan(), into: &bytes)
        record.seal(&bytes, at: SegmentHeader.byteCount, seed: header.recordSeed)
      }
      try writeFile("\(directory.store)/\(FileName.segment(id))", header.encoded() + bytes)
      manifest.sealedSegments.append(
        .init(
          id: id, salt: 5, byteCount: SegmentHeader.byteCount + bytes.count,
          lowestSequence: 1000 + UInt64(number), highestSequence: 1000 + UInt64(number),
          compactedAt: 0))
    }
    manifest.nextID = 10_000
    try writeFile("\(directory.store)/MANIFEST", manifest.encoded())
    let report = try salvage(to: directory("copy"))
    #expect(report.entryCount == 3020 && report.isComplete)
    try FileManager.default.removeItem(atPath: "\(directory.store)/MANIFEST")
    #expect(try salvage(to: directory("again")).entryCount == 3020)
  }

  @Test("Hostile numbers in every field never trap")
  func hostileStores() async {
    await #expect(processExitsWith: .success) {
      for number in [0, 1, UInt64(Int64.max), 1 << 62, 1 << 63, .max] {
        for isClean in [true, false] {
          for flags in [0, 0x2F, 0x10] as [UInt8] {
            var record = RecordHeader(kind: .put)
            record.flags = RecordFlags(rawValue: flags).subtracting(.metadata)
            record.keyByteCount = 1
            record.sequenceDelta = UInt32(clamping: number)
            record.writtenDelta = UInt32(clamping: number)
            record.expires = Int64(bitPattern: number)
            record.idleLimit = number
            record.cost = number
            record.syncMark = number
            record.batchCount = UInt32(clamping: max(1, number))
            record.batchIndex = record.batchCount - 1
            for base in [1, 1 << 31, 1 << 61, 1 << 62] as [UInt64] {
              for time in [0, -(1 << 50) + 1, (1 << 50) - 1] as [Int64] {
                var image = HostileStoreTests.image(
                  isClean: isClean, baseSequence: base, baseTime: time,
                  records: [record, record])
                for way in 0..<3 {
                  if way == 1 { image = image.flipping(image.segmentNames[0], at: 50) }
                  if way == 2 { image.files["MANIFEST"] = nil }
                  let directory = try TemporaryDirectory()
                  try image.write(to: directory.store)
                  _ = try? Store.salvage(path: directory.store, to: directory("copy"))
                  if FileManager.default.fileExists(atPath: directory("copy") + "/MANIFEST") {
                    guard try Store.verify(path: directory("copy")).errors.isEmpty else {
                      throw SupportError(call: "a damaged copy", number: 0)
                    }
                    try Store(directory("copy")).close()
                  }
                }
              }
            }
          }
        }
      }
    }
  }

  @Test("A sync mark beyond the end of its segment is not a loss, however many there are")
  func hostileSyncMarks() async {
    await #expect(processExitsWith: .success) {
      for count in 1...2 {
        var image = Image()
        for number in 1...count {
          let header = SegmentHeader(
            storeIdentifier: [UInt8](repeating: 1, count: 16),
            id: SegmentID(rawValue: UInt64(number)), salt: 7, baseSequence: UInt64(number * 10),
            baseTime: 0)
          var record = RecordHeader(kind: .put)
          record.flags = .syncMark
          record.syncMark = .max
          record.keyByteCount = 1
          var bytes = [UInt8](repeating: 0, count: record.byteCount)
          bytes.withMutableSpan { bytes in
            record.encode(
              key: [UInt8(number)].rawSpan, metadata: RawSpan(), value: RawSpan(), into: &bytes)
            record.seal(&bytes, at: SegmentHeader.byteCount, seed: header.recordSeed)
          }
          image.files[FileName.segment(header.id)] = header.encoded() + bytes
        }
        let directory = try TemporaryDirectory()
        try image.write(to: directory.store)
        let report = try Store.salvage(path: directory.store, to: directory("copy"))
        guard report.entryCount == count, report.lossCount == 0, report.lostByteCount == 0 else {
          throw SupportError(call: "\(report)", number: 0)
        }
      }
    }
  }

  @Test("Large values are copied without being held in memory, and a damaged one leaves nothing")
  func largeValues() throws {
    let path = directory("large")
    let store = try Store(path)
    try store.setValue([UInt8](repeating: 1, count: 5 << 20), forKey: "first")
    try store.setValue([UInt8](repeating: 2, count: 5 << 20), forKey: "damaged")
    try store.setValue([UInt8](repeating: 3, count: 5 << 20), forKey: "last")
    try store.close()
    let image = try Image(of: path)
    for name in image.segmentNames {
      for record in try image.records(in: name) where record.key == Array("damaged".utf8) {
        try overwriteFile("\(path)/\(name)", [9], at: record.valueRange.upperBound - 1)
      }
    }
    let report = try Store.salvage(path: path, to: directory("copy"))
    #expect(report.entryCount == 2 && report.lostKeyCount == 1)
    let copy = try Store(directory("copy"))
    #expect(try copy.value(forKey: "last") == [UInt8](repeating: 3, count: 5 << 20))
    #expect(try copy.value(forKey: "damaged") == nil)
    try copy.close()
    #expect(try Store.verify(path: directory("copy")).errors == [])
  }
}
