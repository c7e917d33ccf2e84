import CairnEssentials
import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Trimming during other work, and its persistence")
final class TrimEngineTests: StoreSuite {
  func fill(_ store: Store, _ count: Int, byteCount: Int = 20) throws {
    for number in 0..<count {
      try store.setValue([UInt8](repeating: 1, count: byteCount), forKey: "key\(number)")
    }
  }

  // MARK: Persistence

  @Test(
    "After a kill and after a close, removed entries stay removed",
    arguments: [true, false], [true, false])
  func reopened(clean: Bool, mapsFiles: Bool) throws {
    let store = try makeStore { $0.mapsFiles = mapsFiles }
    try fill(store, 500, byteCount: 300)
    try store.trim(.toCount(200))
    try store.removeValues(forKeys: ["key400", "key401"])
    try store.remove { key, _ in key.byteCount == 6 && key.copied().last == UInt8(ascii: "9") }
    let contents = try store.contents()
    #expect(contents.count == 200 - 2 - 20)
    if clean { try store.close() }
    try Image(of: directory.store).write(to: directory("copy"))
    let again = try Store(directory("copy"))
    #expect(try again.statistics().recovery.wasClean == clean)
    #expect(try again.contents() == contents)
    try again.close()
    #expect(try Store.verify(path: directory("copy")).errors == [])
  }

  @Test("A durable trim makes one sync, whatever it removes")
  func oneSync() throws {
    let system = FaultyFileSystem()
    let store = try makeStore(fileSystem: system)
    try fill(store, 300)
    let before = system.counts[.synchronizeData, default: 0]
    #expect(try store.trim(.toCount(100), durability: .durable).count == 200)
    #expect(system.counts[.synchronizeData, default: 0] == before + 1)
    #expect(try store.trim(.toCount(100), durability: .durable).count == 0)
    #expect(system.counts[.synchronizeData, default: 0] == before + 1)
  }

  @Test("A failed sync is durabilityUnknown, and the removals are visible")
  func failedSync() throws {
    let system = FaultyFileSystem()
    let store = try makeStore(fileSystem: system)
    try fill(store, 30)
    system.arm(.init(call: .synchronizeData, index: 0, errorNumber: EIO, isLasting: true))
    guard
      case .durabilityUnknown = storeError({ try store.trim(.toCount(3), durability: .durable) })
    else {
      Issue.record("no error")
      return
    }
    #expect(try store.count() == 3)
    guard case .poisoned = storeError({ try store.trim(.toCount(1)) }) else {
      Issue.record("not poisoned")
      return
    }
  }

  // MARK: Observers

  @Test("Every way to remove reports its cause, with key and version, in order")
  func causes() throws {
    let events = Mutex<[RemovalEvent]>([])
    let store = try makeStore {
      $0.removalObserver = { event in events.withLock { $0.append(event) } }
    }
    func told(_ body: () throws -> Void) throws -> [RemovalEvent] {
      events.withLock { $0 = [] }
      try body()
      return events.withLock { $0 }
    }
    func event(_ number: Int, _ cause: RemovalCause) -> RemovalEvent {
      .entry(key: Array("key\(number)".utf8), version: UInt64(number + 1), cause: cause)
    }
    for number in 0..<10 {
      try store.setValue(
        "v", forKey: "key\(number)", lifetime: number == 5 ? .seconds(50) : .standard)
    }
    #expect(
      try told { try store.trim(.toCount(8)) } == [
        event(0, .evicted(.trim)), event(1, .evicted(.trim)),
      ])
    let live = try store.statistics().liveByteCount
    #expect(try told { try store.trim(.toBytes(live - 1)) } == [event(2, .evicted(.trim))])
    #expect(
      try told { try store.removeValues(forKeys: ["key4", "key3"]) }
        == [event(4, .removed), event(3, .removed)])
    #expect(
      try told { try store.remove { key, _ in key.copied().last == UInt8(ascii: "6") } }
        == [event(6, .removed)])
    clock.advance(by: .seconds(50))
    #expect(
      try told { try store.trim(.toCount(2)) } == [event(5, .expired), event(7, .evicted(.trim))])
    #expect(
      Set(try told { try store.trim(.unused(for: .seconds(10))) })
        == [event(8, .evicted(.trim)), event(9, .evicted(.trim))])
    let version = try store.setValue("v", forKey: "key", lifetime: .seconds(1))
    clock.advance(by: .seconds(1))
    #expect(
      try told { try store.trim(.expired) }
        == [.entry(key: Array("key".utf8), version: version, cause: .expired)])
  }

  @Test("An observer may use the store")
  func observerUsesStore() throws {
    let place = Mutex<Store?>(nil)
    let store = try makeStore {
      $0.removalObserver = { _ in
        #expect(throws: Never.self) {
          guard let store = place.withLock({ $0 }) else { return }
          if try store.count() < 50, try !store.contains("observer") {
            try store.setValue("v", forKey: "observer")
          }
          _ = try store.value(forKey: "key99")
        }
      }
    }
    place.withLock { $0 = store }
    defer { place.withLock { $0 = nil } }
    try fill(store, 100)
    #expect(try store.trim(.toCount(10)).count == 90)
    #expect(try store.contains("observer"))
  }

  // MARK: During other work

  /// Runs another thread's work after a trim has chosen its victims and before it removes them: at
  /// its first call of the observer.
  func interrupting(
    _ trim: (Store) throws -> Int, by action: @escaping @Sendable (Store) throws -> Void
  ) throws -> (count: Int, store: Store) {
    let place = Mutex<Store?>(nil)
    let isFirst = Atomic(true)
    let store = try makeStore {
      $0.removalObserver = { _ in
        guard isFirst.exchange(false, ordering: .relaxed), let store = place.withLock({ $0 }) else {
          return
        }
        #expect(throws: Never.self) { try action(store) }
      }
    }
    try fill(store, 300)
    place.withLock { $0 = store }
    defer { place.withLock { $0 = nil } }
    return (try trim(store), store)
  }

  @Test("Entries written or read after they were chosen stay")
  func rechecked() throws {
    // The first 64 are gone when the observer is called for the first.
    let (_, store) = try interrupting {
      try $0.trim(.toCount(100)).count
    } by: { other in
      try other.setValue("new", forKey: "key150")
      _ = try other.value(forKey: "key151")
      try other.removeValue(forKey: "key152")
      _ = try other.contains("key153")
    }
    #expect(try store.text("key150") == "new")
    #expect(try store.contains("key151"))
    #expect(!(try store.contains("key152")))
    // Other entries were removed in their place.
    #expect(try store.count() == 100)
    #expect(!(try store.contains("key153")))
    #expect(!(try store.contains("key201")))
    #expect(try store.contains("key203"))
  }

  @Test("Largest first, a read does not save an entry; a write does")
  func recheckedLargest() throws {
    let (_, store) = try interrupting {
      try $0.trim(.toCount(100, order: .largestFirst)).count
    } by: { other in
      try other.setValue("", forKey: "key150")
      _ = try other.value(forKey: "key151")
    }
    #expect(try store.text("key150") == "")
    #expect(!(try store.contains("key151")))
    #expect(try store.count() == 100)
  }

  @Test("After a removal of all in between, new entries are trimmed by their own recency")
  func removeAllMeanwhile() throws {
    let (_, store) = try interrupting {
      try $0.trim(.toCount(10)).count
    } by: { other in
      try other.removeAll()
      for number in 0..<100 { try other.setValue("new", forKey: "key\(number)") }
    }
    #expect(try store.count() == 10)
    for number in 90..<100 { #expect(try store.text("key\(number)") == "new") }
  }

  @Test("Concurrent readers, writers and trims see no wrong result")
  func concurrent() throws {
    let store = try Store(directory.store, .small())
    let isDone = Atomic(false)
    let rounds = 300
    try onThreads(5) { thread in
      switch thread {
      case 0:
        defer { isDone.store(true, ordering: .relaxed) }
        for round in 0..<rounds {
          switch round % 6 {
          case 0: try store.trim(.toCount(150))
          case 1: try store.trim(.toBytes(8000))
          case 2: try store.trim(.toCount(100, order: .largestFirst))
          case 3: try store.trim(.expired)
          case 4: try store.remove { key, info in info.valueByteCount > 50 && key.byteCount == 6 }
          default: try store.trim(.unused(for: .zero))
          }
        }
      case 1:
        while !isDone.load(ordering: .relaxed) {
          for number in 0..<200 {
            if let value = try store.value(forKey: "k\(number)") {
              #expect(value.allSatisfy { $0 == UInt8(number) })
            }
          }
        }
      case 2:
        // No other thread writes this key: it has this version, or it was trimmed.
        while !isDone.load(ordering: .relaxed) {
          let version = try store.setValue([], forKey: "own")
          if let info = try store.info(forKey: "own") { #expect(info.version == version) }
        }
      default:
        while !isDone.load(ordering: .relaxed) {
          for number in 0..<200 where number % 2 == thread % 2 {
            try store.setValue(
              [UInt8](repeating: UInt8(number), count: number / 2), forKey: "k\(number)",
              lifetime: number % 10 == 0 ? .seconds(0) : .standard)
          }
        }
      }
    }
    let contents = try store.contents()
    #expect(try store.count() == contents.count)
    try store.close()
    let again = try Store(directory.store)
    #expect(try again.contents() == contents)
    try again.close()
    #expect(try Store.verify(path: directory.store).errors == [])
  }

  // MARK: A full disk, damage

  @Test("Without room for a write, a trim has the reserve", arguments: [true, false])
  func fullDisk(durable: Bool) throws {
    let system = FaultyFileSystem()
    let store = try makeStore(fileSystem: system)
    try store.setValue("v", forKey: "first")
    system.arm(.init(call: .allocate, index: 0, errorNumber: ENOSPC, isLasting: true))
    var count = 0
    for byteCount in [3000, 300, 30, 1] {
      let value = [UInt8](repeating: 1, count: byteCount)
      while storeError({ try store.setValue(value, forKey: "\(count)") }) == nil { count += 1 }
    }
    #expect(count > 12)
    let summary = try store.trim(.toCount(count - 11), durability: durable ? .durable : .process)
    #expect(summary.count == 12)
    #expect(try store.removeValues(forKeys: ["11", "12"]) == 2)
    #expect(try store.count() == count - 13)
    // Removals work until the reserve is used up. Removed entries stay removed.
    let error = storeError {
      while try store.count() > 1 { try store.trim(.toCount(1)) }
    }
    if let error {
      guard case .noSpace = error else {
        Issue.record("\(error)")
        return
      }
    }
    let contents = try store.contents()
    #expect(contents.count < count - 13)
    system.arm(nil)
    try store.setValue("v", forKey: "after")
    try store.close()
    #expect(try Store(directory.store).count() == contents.count + 1)
  }

  @Test(
    "A trim removes an entry with a damaged value; one with a damaged head stays, and is counted")
  func damaged() throws {
    let store = try makeStore()
    try fill(store, 20, byteCount: 300)
    let image = try Image(of: directory.store)
    let name = try #require(image.segmentNames.first)
    let records = try image.records(in: name)
    // The damage is done in place, while the store is open.
    let path = directory.store + "/" + name
    let head = records[2].offset + 24
    let value = records[4].valueRange.lowerBound
    let bytes = try #require(image.files[name])
    try overwriteFile(path, [bytes[head] ^ 1], at: head)
    try overwriteFile(path, [bytes[value] ^ 1], at: value)
    let summary = try store.trim(.toCount(10))
    #expect(summary.count == 10)
    #expect(summary.damagedCount == 1)
    #expect(try store.statistics().count == 10)
    #expect(storeError { _ = try store.value(forKey: "key2") }?.corruption != nil)
    #expect(!(try store.contains("key4")))
    #expect(!(try store.contains("key10")))
    #expect(try store.contains("key11"))
    #expect(try store.trim(.toCount(9, order: .largestFirst)).damagedCount == 1)
    #expect(!(try store.contains("key11")))
    #expect(try store.remove { _, _ in false }.damagedCount == 1)
    clock.advance(by: .seconds(5))
    #expect(try store.trim(.older(than: .zero)).damagedCount == 1)
    #expect(try store.statistics().count == 1)
    // A caller that knows the key can remove it.
    #expect(try store.removeValues(forKeys: ["key2"]) == 1)
    #expect(try store.count() == 0)
  }
}
