import CairnEssentials
import CairnLibC
import CairnStore
import FuzzSupport
import Testing

@Suite("A store with a limit on its disk space")
struct DiskLimitTests {
  private let scene: StoreScene

  init() throws { scene = try StoreScene() }

  private func open() throws -> Store { try scene.open { $0.diskByteLimit = 8 << 20 } }

  private func fill(_ store: Store, _ byteCount: Int) throws {
    for number in 0..<(byteCount / 10_000) {
      try store.setValue([UInt8](repeating: 1, count: 10_000), forKey: "key \(number)")
    }
  }

  @Test("The floor of free space is about the filesystem, not about the limit")
  func floor() throws {
    let store = try open()
    try fill(store, 1 << 20)
    let count = try store.count()
    // More than the limit leaves, and less than any test's disk has.
    #expect(try store.trim(.toFreeDiskSpace(16 << 20)).count == 0)
    #expect(try store.count() == count)
    try store.close()
  }

  @Test("A checkpoint that the limit leaves no room for says so")
  func checkpoint() throws {
    let messages = Messages()
    let store = try scene.open {
      $0.diskByteLimit = 8 << 20
      $0.log = DiagnosticLog { messages.add($0.text) }
    }
    try fill(store, 1 << 20)
    // Other files in the directory count.
    let filler = URL(filePath: scene.path + "/filler")
    for step in 0..<256 where messages.all.isEmpty {
      try Data(repeating: 1, count: (5 << 20) + step * (16 << 10)).write(to: filler)
      try store.checkpoint()
      scene.queue.runAll()
    }
    #expect(messages.all.count == 1)
    #expect(messages.all.first?.contains("the store's diskByteLimit is used up") == true)
    try FileManager.default.removeItem(at: filler)
    try store.checkpoint()
    try store.close()
  }

  @Test("At the limit, beside a snapshot that keeps the space, a compaction of everything ends")
  func snapshot() throws {
    let store = try open()
    try fill(store, 16 << 20)
    let keys = try store.keys(prefix: "key ")
    let snapshot = try store.snapshot()
    for key in keys.enumerated() where key.offset % 3 != 0 {
      try store.removeValue(forKey: key.element)
    }
    // Another file takes what is left. So the round begins with the reserve, and the snapshot keeps
    // what the round reclaims.
    let taken = try FileManager.default.contentsOfDirectory(atPath: scene.path).reduce(0) {
      (sum, name) in
      var status = stat()
      // SAFETY: the structure lives across the call.
      return unsafe lstat("\(scene.path)/\(name)", &status) == 0
        ? sum + Int(status.st_blocks) * 512 : sum
    }
    let filler = URL(filePath: scene.path + "/filler")
    try Data(repeating: 1, count: max(0, 8 << 20 - taken)).write(to: filler)
    _ = storeError { try store.compact() }
    try FileManager.default.removeItem(at: filler)
    #expect(try snapshot.count() == keys.count)
    snapshot.close()
    _ = try store.compact()
    for key in keys.enumerated() {
      #expect(try store.contains(key.element) == (key.offset % 3 == 0))
    }
    try store.close()
  }

  @Test("A name that the process may not look at does not count")
  func foreignFolder() throws {
    try open().close()
    try FileManager.default.createDirectory(
      atPath: scene.path + "/lost+found", withIntermediateDirectories: false)
    scene.fileSystem.setHook { event in
      event.call == .status && event.file == "lost+found" ? EACCES : nil
    }
    let store = try open()
    try fill(store, 1 << 20)
    #expect(try store.count() == (1 << 20) / 10_000)
    try store.close()
  }

  @Test(
    "New limits on entries keep the limit on live bytes that follows from it",
    arguments: [nil, 1 << 40])
  func newLimits(byteLimit: Int?) throws {
    let store = try open()
    try store.setLimits(countLimit: 1_000_000, byteLimit: byteLimit)
    // Without that limit, a write would find no room.
    try fill(store, 24 << 20)
    #expect(try store.count() > 100)
    try store.close()
  }

  @Test("A wrong segment size throws beside it too", arguments: [Int.min, -1, 0, Int.max])
  func wrongSegments(byteCount: Int) throws {
    for limit in [8 << 20, Int.max] {
      let error = storeError {
        _ = try scene.open {
          $0.diskByteLimit = limit
          $0.segmentByteLimit = byteCount
        }
      }
      guard case .invalidConfiguration(option: "segmentByteLimit", _)? = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
    }
  }
}
