import CairnStore
import Testing

@Suite("Recovery drops an incomplete batch as a whole")
struct TornBatchTests {
  static let killed = Result {
    try KilledStore { store in
      try store.setValue("old", forKey: "a")
      try store.setValue("old", forKey: "gone")
    } last: { store in
      try store.write { batch in
        try batch.setValue("new", forKey: "a")
        try batch.setValue("new", forKey: "b")
        try batch.removeValue(forKey: "gone")
        try batch.setValue("new", forKey: "c")
      }
    }
  }

  @Test("A complete batch is kept whole", arguments: [nil, otherBoot])
  func complete(boot: [UInt8]?) throws {
    let killed = try Self.killed.get()
    #expect(try Opening(killed.image, boot: boot) == .contents(killed.after))
  }

  @Test("Cut anywhere inside", arguments: 0..<168)
  func truncated(kept: Int) throws {
    let killed = try Self.killed.get()
    let records = try killed.lastRecords
    let start = records[2].offset
    let end = try #require(records.last).range.upperBound
    #expect(end - start == 168)
    let directory = try TemporaryDirectory()
    try killed.image.changing(try killed.lastSegment) { $0.removeLast($0.count - start - kept) }
      .write(to: directory.store)
    let boot = kept % 2 == 0 ? nil : otherBoot
    let store = try Store(
      directory.store, fileSystem: FaultyFileSystem(bootIdentifier: boot))
    #expect(try store.contents() == killed.before)
  }

  @Test("One damaged record", arguments: 0..<4, [nil, otherBoot])
  func damaged(index: Int, boot: [UInt8]?) throws {
    let killed = try Self.killed.get()
    let record = try killed.lastRecords[2 + index]
    let image = killed.image.flipping(try killed.lastSegment, at: record.offset + 4)
    #expect(try Opening(image, boot: boot) == .contents(killed.before))
  }

  @Test("One damaged value", arguments: [0, 1, 3], [nil, otherBoot])
  func damagedValue(index: Int, boot: [UInt8]?) throws {
    let killed = try Self.killed.get()
    let record = try killed.lastRecords[2 + index]
    let image = killed.image.flipping(try killed.lastSegment, at: record.valueRange.lowerBound)
    #expect(try Opening(image, boot: boot) == .contents(killed.before))
  }

  @Test("A batch in its own segment, cut inside")
  func large() throws {
    let killed = try KilledStore {
      try $0.setValue("old", forKey: "a")
    } last: { store in
      try store.write { batch in
        for number in 0..<10 {
          try batch.setValue([UInt8](repeating: 1, count: 9000), forKey: "k\(number)")
        }
      }
    }
    #expect(try Opening(killed.image) == .contents(killed.after))
    let middle = try killed.lastRecords[5]
    let image = killed.image.changing(try killed.lastSegment) {
      $0.removeLast($0.count - middle.offset - 100)
    }
    #expect(try Opening(image) == .contents(killed.before))
  }

  @Test("A complete batch followed by a torn one stays")
  func following() throws {
    let killed = try KilledStore { store in
      try store.write { batch in
        try batch.setValue("1", forKey: "a")
        try batch.setValue("1", forKey: "b")
      }
    } last: { store in
      try store.write { batch in
        try batch.setValue("2", forKey: "a")
        try batch.setValue("2", forKey: "b")
      }
    }
    let last = try #require(try killed.lastRecords.last)
    let image = killed.image.flipping(try killed.lastSegment, at: last.offset)
    #expect(try Opening(image) == .contents(killed.before))
    #expect(try Opening(image, boot: otherBoot) == .contents(killed.before))
  }
}
