import CairnStore
import FuzzSupport
import Testing

@Suite("When reads check values")
struct VerificationTests {
  let scene: ScrubScene

  init() throws { scene = try ScrubScene() }

  /// Whether a read throws because the value is damaged.
  private func isRefused(_ store: Store, _ key: String) -> Bool {
    storeError { _ = try store.value(forKey: key) }?.corruption?.cause == .badValue
  }

  @Test("By default, each read of a store checks")
  func everyRead() throws {
    #expect(StoreConfiguration().verifiesEveryRead)
    let store = try scene.open()
    try scene.fill(store, byteCount: 5000)
    _ = try store.value(forKey: "key 1")
    _ = try scene.damageValue("key 1")
    #expect(isRefused(store, "key 1"))
  }

  @Test(
    "Without verifiesEveryRead, the first read checks, and later ones do not; a scrub and an open do"
  )
  func firstRead() throws {
    let store = try scene.open { $0.verifiesEveryRead = false }
    try scene.fill(store, byteCount: 5000)
    let sound = try #require(try store.value(forKey: "key 1"))
    let event = try scene.damageValue("key 1")
    let damaged = try #require(try store.value(forKey: "key 1"))
    #expect(damaged != sound, "it was found sound, and is not checked again")
    #expect(try store.withValue(forKey: "key 1") { [UInt8](copying: $0) } == damaged)
    #expect(try store.entry(forKey: "key 1")?.value == damaged)
    #expect(try store.snapshot().value(forKey: "key 1") == damaged)
    #expect(try store.scrub().damage == [event])
    try store.close()
    let again = try scene.open { $0.verifiesEveryRead = false }
    #expect(isRefused(again, "key 1"))
    #expect(isRefused(again, "key 1"), "what was found damaged is not taken for sound")
  }

  @Test("Each way of reading remembers what it found sound", arguments: 0..<4)
  func remembering(way: Int) throws {
    let store = try scene.open { $0.verifiesEveryRead = false }
    try scene.fill(store, byteCount: 5000)
    switch way {
    case 0: _ = try store.withValue(forKey: "key 2") { $0.byteCount }
    case 1: _ = try store.peekValue(forKey: "key 2")
    case 2: _ = try store.entry(forKey: "key 2")
    default: _ = try store.snapshot().value(forKey: "key 2")
    }
    _ = try scene.damageValue("key 2")
    _ = try scene.damageValue("key 3")
    #expect(!isRefused(store, "key 2"))
    #expect(isRefused(store, "key 3"))
  }

  @Test("Small values are checked at each read")
  func small() throws {
    let store = try scene.open { $0.verifiesEveryRead = false }
    try scene.fill(store, byteCount: 4095)
    _ = try store.value(forKey: "key 1")
    _ = try scene.damageValue("key 1")
    #expect(isRefused(store, "key 1"))
  }

  @Test("Values in the active segment are checked at each read")
  func active() throws {
    let store = try scene.open { $0.verifiesEveryRead = false }
    try scene.fill(store, byteCount: 5000)
    _ = try store.value(forKey: "key 59")
    _ = try scene.damageValue("key 59")
    #expect(isRefused(store, "key 59"))
  }

  @Test("A sound value is checked again once its segment is written to again")
  func resumed() throws {
    let first = try scene.open()
    try scene.fill(first, 0..<2, byteCount: 5000)
    try first.close()
    let store = try scene.open { $0.verifiesEveryRead = false }
    _ = try store.value(forKey: "key 1")
    try scene.fill(store, 2..<3, byteCount: 5000)
    #expect(try Image(of: scene.directory.store).segmentNames.count == 1, "the log continues there")
    _ = try scene.damageValue("key 1")
    #expect(isRefused(store, "key 1"))
  }

  @Test("A record that a compaction has moved is checked again")
  func moved() throws {
    let store = try scene.open {
      $0.verifiesEveryRead = false
      $0.spaceBound = 1000
    }
    try scene.fill(store, byteCount: 5000)
    for number in 0..<60 { _ = try store.value(forKey: "key \(number)") }
    for number in 0..<60 where number % 2 == 0 { try store.removeValue(forKey: "key \(number)") }
    let before = try scene.place(of: "key 1")
    try store.compact()
    let after = try scene.place(of: "key 1")
    #expect(before.file != after.file || before.record.offset != after.record.offset)
    _ = try scene.damageValue("key 1")
    #expect(isRefused(store, "key 1"))
  }
}

@Suite("Bits of pages")
struct PageBitsTests {
  private final class Shared: Sendable {
    let bits: PageBits
    init(byteCount: Int) { bits = PageBits(ofFile: byteCount) }
  }

  @Test("Each bit represents its page alone, even if several threads set bits")
  func bits() throws {
    let pageCount = 1000
    let shared = Shared(byteCount: pageCount * PageBits.pageByteCount)
    #expect(!shared.bits[0])
    try onThreads(4) { thread in
      for page in stride(from: thread, to: pageCount, by: 4) where page % 3 != 0 {
        shared.bits.set(page * PageBits.pageByteCount + page)
      }
    }
    for page in 0..<pageCount {
      #expect(shared.bits[page * PageBits.pageByteCount] == (page % 3 != 0))
      #expect(shared.bits[page * PageBits.pageByteCount + 4095] == (page % 3 != 0))
    }
  }
}
