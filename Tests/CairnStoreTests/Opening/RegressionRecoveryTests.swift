import CairnStore
import Foundation
import Glibc
import Synchronization
import Testing

@Suite("Regression: recovery")
struct RegressionRecoveryTests {
  /// Twenty entries that a close left and made durable, and one that was written after the next
  /// open; a power loss took what followed the close. No record says that another was durable.
  private func resumedAndLost(reboot: Bool) throws -> (scene: RegressionScene, end: Int) {
    let scene = try RegressionScene()
    let first = try scene.open()
    // So few that there is no checkpoint, after which damage costs the key that it concerns.
    for index in 0..<16 { try first.setValue("value\(index)", forKey: "key\(index)") }
    try first.close()
    let end = try scene.manifest().openSegments[0].byteCount
    let second = try scene.open()
    try second.setValue("more", forKey: "more")
    let lost = try scene.killed()
    try lost.edit { $0.removeLast($0.count - end) }
    if reboot { try lost.reboot() }
    return (lost, end)
  }

  @Test(
    "What a close made durable is not a torn tail of the next session", arguments: [true, false])
  func damagedPrefix(reboot: Bool) throws {
    // The manifest of the next session forgot how much had been durable, so damage in that part
    // passed for a torn write: the store opened without acknowledged entries, silently.
    let (scene, end) = try resumedAndLost(reboot: reboot)
    try scene.edit { $0[end - 20] ^= 1 }
    try scene.expectCorrupt()
  }

  @Test(
    "A file that is shorter than what a close made durable is damage", arguments: [true, false])
  func shortPrefix(reboot: Bool) throws {
    // As above: half of the file was missing, and the store opened with half of its entries.
    let (scene, end) = try resumedAndLost(reboot: reboot)
    try scene.edit { $0.removeLast($0.count - end / 2) }
    try scene.expectCorrupt()
  }

  @Test("Early damage in what a close left is found after a power loss")
  func earlyDamage() throws {
    // As above, from the middle: all entries behind the damage went without an error.
    let (scene, _) = try resumedAndLost(reboot: true)
    try scene.damage("key3")
    try scene.expectCorrupt()
  }

  @Test("What a close left and a power loss took no part of opens in full")
  func intactPrefix() throws {
    // The counterpart of the above: losing what was not durable is no damage.
    let (scene, _) = try resumedAndLost(reboot: true)
    #expect(try scene.open().count() == 16)
  }

  @Test("A batch over a record that cannot be read is published as a whole")
  func batchOverUnreadableRecord() throws {
    // The error came when the batch was in the log and half in the index: reads saw half of it,
    // and a restart all of it.
    let scene = try RegressionScene()
    let store = try scene.open { $0.access = .systemCalls }
    try store.setValue("old", forKey: "a")
    try store.setValue("old", forKey: "b")
    let count = Mutex(0)
    scene.fileSystem.setHook { event in
      guard event.call == .read else { return nil }
      return count.withLock { count in
        count += 1
        return count == 2 ? EIO : nil
      }
    }
    try store.write { batch in
      try batch.setValue("new", forKey: "a")
      try batch.setValue("new", forKey: "b")
    }
    #expect(count.withLock { $0 } >= 2)
    scene.fileSystem.setHook(nil)
    let again = try scene.killed().open()
    for store in [store, again] {
      #expect(try store.value(forKey: "a") == Array("new".utf8))
      #expect(try store.value(forKey: "b") == Array("new".utf8))
    }
  }

  // MARK: What a kill cannot explain

  /// A store of some entries, killed.
  private func killed(_ write: (Store) throws -> Void) throws -> RegressionScene {
    let scene = try RegressionScene()
    let store = try scene.open()
    try write(store)
    return try scene.killed()
  }

  @Test("A later record that ends in zeros shows that the one before is damaged")
  func laterRecordEndsInZeros() throws {
    // Places of records were looked for only before the last byte that is not zero, less a record:
    // a last record with a key of one zero byte was overlooked, and the damaged one before it
    // passed for torn.
    let scene = try killed { store in
      try store.setValue("alpha", forKey: "first")
      try store.setValue([UInt8](), forKey: [UInt8]([0]))
    }
    try scene.edit { $0[SegmentHeader.byteCount + 10] ^= 1 }
    try scene.expectCorrupt()
  }

  @Test("A damaged value before a damaged header before sound records is damage")
  func valueBeforeHole() throws {
    // The value counted as the last one, since the hole came next: everything from it on was cut
    // off, sound records behind the hole included.
    let scene = try killed { store in
      for index in 0..<8 { try store.setValue("value\(index)", forKey: "key\(index)") }
    }
    try scene.damage("value2")
    try scene.damage("key3")
    try scene.expectCorrupt()
  }

  @Test("A damaged record before a whole batch is damage", arguments: ["key1", "key3"])
  func recordBeforeBatch(key: String) throws {
    // Records of one batch beyond a hole passed for the batch that a kill had cut, although it did
    // not begin where the hole did.
    let scene = try killed { store in
      for index in 0..<4 { try store.setValue("value\(index)", forKey: "key\(index)") }
      try store.write { batch in
        try batch.setValue("b", forKey: "batch1")
        try batch.setValue("b", forKey: "batch2")
      }
    }
    try scene.damage(key)
    try scene.expectCorrupt()
  }

  // MARK: Hostile numbers

  @Test("A segment that begins with the number 0 is refused, and a roll of it does not trap")
  func rollWithNumberZero() async {
    // A roll record has the number of the record that follows; that less one, of 0, trapped.
    await #expect(processExitsWith: .success) {
      let scene = try RegressionScene()
      let store = try scene.open()
      try store.setValue("alpha", forKey: "first")
      let killed = try scene.killed()
      var header = try killed.segmentHeader()
      header.baseSequence = 0
      let encoded = header.encoded()
      let seed = header.recordSeed
      try killed.edit { bytes in
        bytes.replaceSubrange(0..<SegmentHeader.byteCount, with: encoded)
        var roll = [UInt8](repeating: 0, count: RecordHeader.rollByteCount)
        roll.withMutableSpan {
          let record = RecordHeader(kind: .roll)
          record.encode(key: RawSpan(), metadata: RawSpan(), value: RawSpan(), into: &$0)
          record.seal(&$0, at: SegmentHeader.byteCount, seed: seed)
        }
        bytes.replaceSubrange(SegmentHeader.byteCount..<(SegmentHeader.byteCount + 24), with: roll)
      }
      try killed.expectCorrupt()
    }
  }

  @Test("The highest generation of a manifest does not trap")
  func highestGeneration() async {
    // The next generation was one more, which overflowed at the first write.
    await #expect(processExitsWith: .success) {
      let scene = try RegressionScene()
      try scene.open().close()
      try scene.editManifest { $0.generation = .max }
      let store = try scene.open()
      try store.setValue("1", forKey: "a")
      try store.close()
      #expect(try scene.open().count() == 1)
    }
  }

  @Test("A segment whose numbers begin beyond all that were used is refused")
  func baseBeyondNext() async {
    // The difference to the segment's first number was negative, and trapped at the first write.
    await #expect(processExitsWith: .success) {
      let scene = try RegressionScene()
      let store = try scene.open()
      try store.setValue("1", forKey: "a")
      try store.close()
      var header = try scene.segmentHeader()
      header.baseSequence = 1 << 40
      let encoded = header.encoded()
      try scene.edit { $0.replaceSubrange(0..<SegmentHeader.byteCount, with: encoded) }
      try scene.editManifest { $0.openSegments[0].byteCount = SegmentHeader.byteCount }
      #expect(throws: StoreError.self) { try scene.open() }
    }
  }

  @Test("A jump of the sequence numbers does not trap, and the store opens again")
  func sequenceJump() async {
    // The difference to the segment's first number did not fit 32 bits, and trapped.
    await #expect(processExitsWith: .success) {
      let scene = try RegressionScene()
      let store = try scene.open()
      try store.setValue("1", forKey: "a")
      try store.close()
      try scene.editManifest { $0.lastSequence = 1 << 40 }
      for key in ["b", "c"] {
        let store = try scene.open()
        try store.setValue("1", forKey: key)
        try store.close()
      }
      #expect(try scene.open().count() == 3)
    }
  }

  @Test("Sequence numbers at their limit are refused, at the open or at a write, never later")
  func sequenceLimit() async {
    // The last numbers could be used up, and then the manifest held one that no open accepts.
    await #expect(processExitsWith: .success) {
      let highest = FormatVersion.highestSequence
      for last in [highest - 3, highest - 2, highest - 1, highest] {
        let scene = try RegressionScene()
        try scene.open().close()
        try scene.editManifest { $0.lastSequence = last }
        guard let store = try? scene.open() else { continue }
        for index in 0..<4 { _ = try? store.setValue("1", forKey: "key\(index)") }
        let count = try store.count()
        try store.close()
        #expect(try scene.open().count() == count)
      }
    }
  }

  @Test("Bytes of a value made to look like headers do not hold up a recovery")
  func hostileValue() throws {
    // Each 8 bytes claimed to begin a record with the longest key and metadata, whose checksum was
    // run over 128 KiB at each place: hours for a segment of 64 MiB. The budget is in bytes; what
    // can be seen from outside is time, of which the mended code takes a hundredth.
    let scene = try RegressionScene()
    let store = try scene.open { $0.segmentByteLimit = 64 << 20 }
    try store.setValue("1", forKey: "a")
    let killed = try scene.killed()
    let word: [UInt8] = [0xFF, 0xFF, 0, 0, 0xFF, 0xFF, 1, 8]
    try killed.edit { bytes in
      bytes.removeLast(bytes.count - 4096)
      for _ in 0..<(8 << 20) / word.count { bytes += word }
    }
    // Time of the processor, since a busy machine makes everything take long.
    func seconds() throws -> Int {
      // Not by its members: which module they are taken to come from depends on what is compiled together.
      let time = UnsafeMutablePointer<timespec>.allocate(capacity: 1)
      defer { unsafe time.deallocate() }
      try check("clock_gettime", unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, time))
      return unsafe UnsafeRawPointer(time).load(as: Int.self)
    }
    let start = try seconds()
    #expect(try killed.open(readOnly: true).count() == 1)
    #expect(try seconds() - start < 30)
  }
}
