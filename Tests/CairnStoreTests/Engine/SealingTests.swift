import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

/// A rolled segment is synced in the background, while the writer continues.
@Suite("Sealing, and the work it saves the writer")
struct SealingTests {
  private final class Calls: Sendable {
    private let events = Mutex<[FaultyFileSystem.Event]>([])

    func note(_ event: FaultyFileSystem.Event) -> Int32? {
      events.withLock { $0.append(event) }
      return nil
    }

    /// The calls that concern pages, in order. A sync is recorded by the name of its file.
    func take() -> [String] {
      events.withLock { events in
        defer { events = [] }
        return events.compactMap { event in
          switch event.call {
          case .synchronizeData: event.file
          case .unmapPages: "unmap"
          default: nil
          }
        }
      }
    }
  }

  @Test(
    "A segment's pages leave the mapping first, and the active segment is not synced with it")
  func syncs() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    let value = [UInt8].filled(1000)
    // A little more than 72 KiB: the last few values go into the second segment.
    for number in 0..<78 { try store.setValue(value, forKey: "key \(number)") }
    let calls = Calls()
    scene.fileSystem.setHook { calls.note($0) }
    scene.queue.runAll(dueAfter: .zero)
    let sealing = calls.take()
    #expect(
      sealing.firstIndex(of: "unmap")
        == sealing.firstIndex(of: StoreScene.segment).map { $0 - 1 })
    #expect(!sealing.contains("seg-0000000000000002"))
    // A sync of everything syncs the rest.
    try store.sync()
    #expect(calls.take() == ["seg-0000000000000002"])
    for number in 0..<78 { #expect(try store.value(forKey: "key \(number)") == value) }
    scene.fileSystem.setHook(nil)
    try store.close()
    #expect(try Store.verify(path: scene.path).errors == [])
  }

  @Test(
    "A sync that includes a rolled segment counts as durable only what it covers"
  )
  func durableAfterSealing() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    for number in 0..<78 { try store.setValue([UInt8].filled(1000), forKey: "key \(number)") }
    scene.queue.runAll(dueAfter: .zero)
    let calls = Calls()
    scene.fileSystem.setHook { calls.note($0) }
    try store.setValue("last", forKey: "last", durability: .durable)
    #expect(calls.take().last == "seg-0000000000000002")
    scene.fileSystem.setHook(nil)
  }

  @Test("A read that began before a segment was cut at its end still finds the record")
  func sealedWhileReading() throws {
    // The bound of a read is loaded first, and the file is read afterwards. A segment that is
    // sealed in between is shorter than the bound.
    let scene = try StoreScene()
    let store = try scene.open { $0.mapsFiles = false }
    for index in 0..<1000 { try store.setValue([UInt8].filled(300), forKey: "key\(index)") }
    var rolled = SegmentHeader.byteCount
    // The last record of the first segment, which is not sealed because no job has run.
    let bytes = try scene.bytes(of: StoreScene.segment)
    var last: [UInt8] = []
    while let header = RecordHeader(
      decoding: bytes.rawSpan.extracting(rolled..<bytes.count), limit: bytes.count - rolled),
      header.kind != .roll
    {
      last = Array(bytes[(rolled + header.keyRange.lowerBound)...].prefix(header.keyByteCount))
      rolled += header.byteCount
    }
    let queue = scene.queue
    scene.fileSystem.setHook { event in
      if event.call == .read { queue.runAll(dueAfter: .zero) }
      return nil
    }
    #expect(try store.value(forKey: last) == [UInt8].filled(300))
  }
}
