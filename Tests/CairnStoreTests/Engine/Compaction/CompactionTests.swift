import CairnRepair
import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

private func value(_ number: Int) -> [UInt8] {
  [UInt8](repeating: UInt8(number & 0xFF), count: 1000)
}

@Suite("Compaction")
final class CompactionTests: StoreSuite {
  /// Writes `count` values of 1,000 bytes. The second half of them replaces every other value.
  func fill(_ store: Store, _ count: Int = 400) throws {
    for number in 0..<count { try store.setValue(value(number), forKey: "key\(number)") }
    for number in stride(from: 0, to: count, by: 2) {
      try store.setValue(value(number + 7), forKey: "key\(number)")
    }
  }

  /// Found by `CrashFuzzer --seed 902175`: a segment that a compaction wrote while another one was
  /// active has a barrier below tombstones of the active one, and came after it. These tombstones
  /// were kept although no segment needed them.
  @Test("Tombstones that wait for a segment of a later round are dropped too")
  func tombstonesOfEarlierRound() throws {
    let store = try makeStore()
    let large = [UInt8](repeating: 5, count: 7000)
    for number in 0..<8 { try store.setValue(large, forKey: "old\(number)") }
    for _ in 0..<2 { try store.setValue("v", forKey: "leaves a dead record") }
    queue.runAll()
    // The active segment then has no dead record.
    try store.compact()
    try store.setValue(large, forKey: "new0")
    try store.setValue(large, forKey: "old0")
    #expect(try store.compact().writtenSegmentCount == 1)
    for key in ["old1", "old2"] { try store.removeValue(forKey: key) }
    for number in 0..<4 { try store.setValue(large, forKey: "new\(number)") }
    let last = try store.statistics().lastVersion
    let report = try store.compact()
    let statistics = try store.statistics()
    #expect(statistics.lastVersion == last)
    #expect(report.removedSegmentCount >= 2)
    #expect(report.droppedTombstoneCount == 2)
    #expect(statistics.tombstoneCount == 0)
    #expect(statistics.deadByteCount <= 24 * statistics.segmentCount)
    #expect(try store.auditUsage() == [])
    #expect(try store.compact().writtenSegmentCount == 0)
  }

  /// All attributes of each entry, by key.
  func entries(_ store: Store) throws -> [[UInt8]: ByteEntry] {
    var entries: [[UInt8]: ByteEntry] = [:]
    try store.forEachEntry {
      entries[$0.key] = $0
      return .next
    }
    return entries
  }

  @Test(
    "After a manual compaction, no dead byte is left and no entry has changed",
    arguments: [true, false])
  func byHand(mapsFiles: Bool) throws {
    let store = try makeStore { $0.mapsFiles = mapsFiles }
    try fill(store)
    try store.write { batch in
      for number in 0..<20 { try batch.setValue("in a batch", forKey: "batch\(number)") }
      try batch.removeValue(forKey: "batch0")
    }
    try store.setValue(
      "all", forKey: "attributes",
      options: EntryOptions(cost: 5, lifetime: .seconds(60), metadata: [1, 2, 3]))
    try store.setValue([UInt8](repeating: 3, count: 100_000), forKey: "large")
    try store.setValue([UInt8](repeating: 4, count: 90_000), forKey: "large")
    for number in 100..<150 { try store.removeValue(forKey: "key\(number)") }
    // A waiting job may hold a segment.
    queue.runAll()
    let before = try entries(store)
    let old = try store.statistics()
    let report = try store.compact()
    let new = try store.statistics()
    #expect(try entries(store) == before)
    #expect(new.liveByteCount + new.deadByteCount < old.liveByteCount + old.deadByteCount)
    #expect(new.liveByteCount <= old.liveByteCount)
    #expect(new.tombstoneCount == 0)
    #expect(new.deadByteCount <= 24 * new.segmentCount)
    #expect(report.droppedTombstoneCount == old.tombstoneCount)
    #expect(report.unreadableSegmentCount == 0)
    #expect(report.byteCountAfter < report.byteCountBefore)
    // An operation of another test may briefly keep a segment.
    try waitUntil { try store.statistics().pinnedByteCount == 0 }
    // The result is the same after a kill and a close.
    try Image(of: directory.store).write(to: directory("killed"))
    let killed = try Store(directory("killed"), .small(clock: clock))
    #expect(try entries(killed).mapValues(\.value) == before.mapValues(\.value))
    #expect(try entries(killed).mapValues(\.info.version) == before.mapValues(\.info.version))
    #expect(try entries(killed).mapValues(\.info.written) == before.mapValues(\.info.written))
    #expect(try killed.statistics().recovery.quarantinedFiles == [])
    try killed.close()
    try store.close()
    #expect(try Store.verify(path: directory.store).errors == [])
    // A second compaction finds nothing to do.
    let again = try makeStore()
    #expect(try again.compact().removedSegmentCount == 0)
    try again.close()
  }

  @Test(
    "Values of all sizes and long heads are copied, whatever write of the copier they end in",
    arguments: [true, false])
  func sizes(mapsFiles: Bool) throws {
    let store = try makeStore {
      $0.mapsFiles = mapsFiles
      $0.segmentByteLimit = 4 << 20
    }
    let sizes = [0, 1, 4095, 4096, 65_535, 65_536, 200_000, 262_071, 262_144, 300_001, 1_048_577]
    var expected: [[UInt8]: [UInt8]] = [:]
    var generator = Seed.generator()
    for (number, size) in sizes.enumerated() {
      for (kind, keyByteCount) in [8, 60_000].enumerated() {
        let key = [UInt8(number), UInt8(kind)] + generator.bytes(count: keyByteCount)
        expected[key] = generator.bytes(count: size)
        let options = EntryOptions(metadata: Array(key.prefix(1 + 50_000 * kind)))
        try store.setValue(try #require(expected[key]), forKey: key, options: options)
        // A dead record beside each.
        try store.setValue([UInt8](repeating: 1, count: size), forKey: "dead")
      }
    }
    let before = try entries(store)
    queue.runAll()
    #expect(try store.compact().copiedRecordCount > sizes.count)
    #expect(try entries(store) == before)
    #expect(before.filter { $0.key != Array("dead".utf8) }.mapValues(\.value) == expected)
    try store.close()
    #expect(try Store.verify(path: directory.store).errors == [], Seed.comment)
  }

  /// The sizes have ends at all places of a piece.
  @Test(
    "A compaction does not read large values that are dead",
    arguments: [96 << 10, 200_000, 256 << 10, 257 << 10])
  func deadValuesNotRead(size: Int) throws {
    let store = try scene.open { $0.segmentByteLimit = 16 << 20 }
    let liveCount = (5 << 20) / size
    for number in 0..<2 * liveCount {
      try store.setValue([UInt8](repeating: 1, count: size), forKey: "key\(number)")
    }
    let live = stride(from: 1, to: 2 * liveCount, by: 2)
    for number in live { try store.removeValue(forKey: "key\(number - 1)") }
    queue.runAll()
    let before = scene.fileSystem.readByteCount
    #expect(try store.compact().copiedRecordCount == liveCount)
    let readByteCount = scene.fileSystem.readByteCount - before
    #expect(readByteCount < liveCount * size * 5 / 4, "\(readByteCount)")
    for number in live { #expect(try store.value(forKey: "key\(number)")?.count == size) }
    try store.close()
  }

  @Test("The least recently read entries stay so, even when the store is reopened")
  func recency() throws {
    let store = try makeStore()
    try fill(store, 200)
    #expect(try store.value(forKey: "key1") != nil)
    try store.compact()
    let copy = directory("copy")
    try Image(of: directory.store).write(to: copy)
    try store.trim(.toCount(101))
    // The odd keys were written first. Of these, only the one that was read stays.
    for number in stride(from: 0, to: 200, by: 2) { #expect(try store.contains("key\(number)")) }
    #expect(try store.contains("key1"))
    let opened = try Store(copy, .small(clock: clock))
    try opened.trim(.toCount(100))
    for number in stride(from: 0, to: 200, by: 2) { #expect(try opened.contains("key\(number)")) }
    try opened.close()
    try store.close()
  }

  @Test("Readers continue, and what they hold is reported as pinned")
  func pinned() throws {
    let store = try makeStore()
    try fill(store)
    let expected = value(1)
    try store.withValue(forKey: "key1") { bytes in
      let report = try store.compact()
      // An operation of another test may briefly have kept more.
      let pinned = try store.statistics().pinnedByteCount
      #expect(pinned > 0 && pinned <= report.pinnedByteCount)
      #expect(bytes.copied() == expected)
      #expect(try store.value(forKey: "key1") == expected)
    }
    queue.runAll()
    try waitUntil { try store.statistics().pinnedByteCount == 0 }
    try store.close()
  }

  @Test("A damaged value is copied as it is: reads still find the damage, and its segment goes")
  func damaged() throws {
    let store = try makeStore()
    try fill(store)
    // The first segment, in which other values were replaced.
    let image = try Image(of: directory.store)
    let (name, record) = try #require(
      try image.segmentNames.compactMap { name in
        try image.records(in: name).first { $0.key == Array("key1".utf8) }.map { (name, $0) }
      }.first)
    let file = try #require(FileHandle(forWritingAtPath: directory.store + "/" + name))
    try file.seek(toOffset: UInt64(record.valueRange.lowerBound))
    try file.write(contentsOf: [0xEE])
    try file.close()
    let report = try store.compact()
    #expect(report.unreadableSegmentCount == 0)
    #expect(report.removedSegmentCount > 0)
    #expect(try store.value(forKey: "key3") == value(3))
    #expect(try Image(of: directory.store).files[name] == nil)
    func cause(_ store: Store) -> Corruption.Cause? {
      guard case .corrupt(let place) = storeError({ _ = try store.value(forKey: "key1") }) else {
        return nil
      }
      return place.cause
    }
    #expect(cause(store) == .badValue)
    let killed = try reopenedAfterKill("killed")
    #expect(cause(killed) == .badValue)
    #expect(try killed.value(forKey: "key3") == value(3))
    try killed.close()
    try store.close()
  }

  @Test("Without room, a compaction throws noSpace, loses nothing, and leaves no file")
  func noRoom() throws {
    let system = FaultyFileSystem()
    let store = try makeStore(fileSystem: system)
    try fill(store)
    queue.runAll()
    // Dead space that housekeeping leaves for a manual compaction.
    try fill(store)
    let before = try entries(store)
    try store.sync()
    let names = try Image(of: directory.store).segmentNames
    system.arm(.init(call: .allocate, index: 0, errorNumber: ENOSPC, isLasting: true))
    guard case .noSpace = storeError({ try store.compact() }) else {
      Issue.record("no error")
      return
    }
    system.arm(nil)
    #expect(try entries(store) == before)
    #expect(Set(try Image(of: directory.store).segmentNames).isSubset(of: Set(names)))
    try store.compact()
    #expect(try entries(store) == before)
    try store.close()
    #expect(try Store.verify(path: directory.store).errors == [])
  }

  @Test(
    "On a full disk, a trim's space is reclaimed by segments without a live value and by small rounds"
  )
  func fullDisk() throws {
    let system = FaultyFileSystem()
    let store = try makeStore({ $0.deadByteFloor = 0 }, fileSystem: system)
    for number in 0..<1000 { try store.setValue(value(number), forKey: "key\(number)") }
    queue.runAll()
    let before = try store.statistics().allocatedByteCount
    system.fillDisk()
    // Removes some values in each segment, and all in the first ones.
    try store.remove { key, _ in key.copied().last != UInt8(ascii: "1") }
    queue.runAll()
    try store.compact()
    let after = try store.statistics()
    #expect(after.allocatedByteCount < before / 3)
    #expect(try store.count() == 100)
    for number in stride(from: 1, to: 1000, by: 10) {
      #expect(try store.value(forKey: "key\(number)") == value(number))
    }
    try store.setValue(value(1), forKey: "new")
    try store.close()
    #expect(try Store.verify(path: directory.store).errors == [])
  }

  @Test("A removal that chose its victims before they were moved removes them")
  func movedVictims() throws {
    let store = try makeStore()
    try fill(store)
    let isFirst = Mutex(true)
    // The first call of the predicate moves all entries.
    let removed = try store.remove { key, _ in
      if isFirst.withLock({ first in
        defer { first = false }; return first
      }) {
        try store.compact()
      }
      return key.copied().last == UInt8(ascii: "1")
    }
    #expect(removed.count == 40)
    #expect(try store.count() == 360)
    try store.close()
    let again = try Store(directory.store)
    #expect(try again.count() == 360)
    try again.close()
  }

  @Test("A store that evicts forever stays within its bound: tombstones do not accumulate")
  func evictsForEver() throws {
    let keys = 2000
    let count = 60_000
    let store = try makeStore { $0.deadByteFloor = 0 }
    let small = [UInt8](repeating: 7, count: 100)
    var worst = 0.0
    for number in 0..<count {
      try store.setValue(small, forKey: "key number \(number)")
      if number >= keys { try store.removeValue(forKey: "key number \(number - keys)") }
      if number % 500 == 0 {
        queue.runAll()
        let statistics = try store.statistics()
        let sealed = statistics.segments.filter(\.isSealed)
        let taken = sealed.reduce(0) { $0 + $1.byteCount }
        if number > keys { worst = max(worst, Double(taken) / Double(statistics.liveByteCount)) }
      }
    }
    #expect(worst < 1.5, "\(worst)")
    queue.runAll()
    #expect(try store.statistics().tombstoneCount < keys)
    #expect(try store.count() == keys)
    try store.close()
    let again = try Store(directory.store)
    #expect(try again.count() == keys)
    #expect(try again.contains("key number \(count - 1)"))
    #expect(try !again.contains("key number \(count - keys - 1)"))
    try again.close()
  }

  @Test("Readers and writers on other threads do not notice a compaction")
  func beside() throws {
    let store = try Store(directory.store, .small { $0.deadByteFloor = 0 })
    for number in 0..<500 { try store.setValue(value(number), forKey: "fixed\(number)") }
    let isDone = Atomic(false)
    let others = Background {
      var round = 0
      repeat {
        round += 1
        for number in 0..<500 {
          guard try store.value(forKey: "fixed\(number)") == value(number) else {
            throw SupportError(call: "a read beside a compaction", number: Int32(number))
          }
          try store.setValue(value(round), forKey: "own\(number % 50)")
          guard try store.value(forKey: "own\(number % 50)") == value(round) else {
            throw SupportError(call: "a write beside a compaction", number: Int32(number))
          }
        }
      } while !isDone.load(ordering: .relaxed)
    }
    for _ in 0..<20 { try store.compact() }
    isDone.store(true, ordering: .relaxed)
    #expect(others.finishes())
    #expect(others.error == nil)
    #expect(try store.count() == 550)
    try store.close()
    #expect(try Store.verify(path: directory.store).errors == [])
  }

  @Test("A close does not wait for a compaction, and leaves none of its files")
  func closedMeanwhile() throws {
    let system = FaultyFileSystem()
    let store = try makeStore(fileSystem: system)
    try fill(store)
    queue.runAll()
    try fill(store)
    try store.sync()
    let gate = Gate()
    let known = Set(try Image(of: directory.store).segmentNames)
    system.setHook { event in
      if event.call == .synchronize, event.file.hasPrefix("seg-"), !known.contains(event.file) {
        gate.passOnce()
      }
      return nil
    }
    let compaction = Background { try store.compact() }
    try gate.waitForArrival()
    let closing = Background { try store.close() }
    #expect(closing.finishes(within: 20))
    #expect(closing.error == nil)
    gate.open()
    #expect(compaction.finishes())
    guard case .closed? = compaction.error as? StoreError else {
      Issue.record("\(String(describing: compaction.error))")
      return
    }
    let manifest = try Image(of: directory.store).manifest
    let listed = Set(
      (manifest.openSegments.map(\.id) + manifest.sealedSegments.map(\.id)).map {
        FileName.segment($0)
      })
    #expect(Set(try Image(of: directory.store).segmentNames) == listed)
    let again = try Store(directory.store)
    #expect(try again.count() == 400)
    try again.close()
  }

  @Test("A manual compaction reports a failed sync, even if it got what it needed")
  func failedSync() throws {
    // The log is synced up to the end of the segment to be sealed. Then the sync of the next one
    // fails. From then on, the store refuses writes and compacts nothing.
    let scene = try StoreScene()
    let store = try scene.open()
    // Each value goes into the next segment. Two are rolled but not sealed yet.
    for key in ["a", "b", "c"] { try store.setValue([UInt8].filled(40_000), forKey: key) }
    let count = Atomic(0)
    scene.fileSystem.setHook { event in
      guard event.call == .synchronizeData, FileName.isSegment(event.file) else { return nil }
      return count.wrappingAdd(1, ordering: .relaxed).newValue == 2 ? EIO : nil
    }
    let error = storeError { try store.compact() }
    scene.fileSystem.setHook(nil)
    let cause: SystemFailure
    switch error {
    case .poisoned(let failure), .durabilityUnknown(let failure): cause = failure
    default:
      Issue.record("\(String(describing: error)) after \(count.load(ordering: .relaxed)) syncs")
      return
    }
    #expect(cause.errorNumber == EIO)
    #expect(throws: StoreError.self) { try store.setValue("more", forKey: "more") }
    #expect(try store.count() == 3)
  }
}
