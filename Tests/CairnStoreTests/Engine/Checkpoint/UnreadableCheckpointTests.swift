import CairnLibC
import CairnStore
import Testing

@Suite("A checkpoint that is temporarily unreadable")
struct UnreadableCheckpointTests {
  @Test(
    "A write that needs part of the checkpoint throws, and has not happened after a kill either",
    arguments: [false, true])
  func write(inBatch: Bool) throws {
    let directory = try TemporaryDirectory()
    var store = try Store(directory.store)
    // More than the open reads at once.
    for number in 0..<5000 { try store.setValue("old", forKey: "key\(number)") }
    try store.close()

    let files = FaultyFileSystem()
    store = try Store(directory.store, fileSystem: files)
    files.arm(FaultyFileSystem.Fault(call: .read, index: 0, errorNumber: ENOMEM, isLasting: true))
    let error = storeError {
      if inBatch {
        try store.write { batch in
          for number in 0..<100 { try batch.setValue("new", forKey: "key\(number)") }
        }
      } else {
        try store.setValue("new", forKey: "key7")
      }
    }
    guard case .system(let failure) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(failure.errorNumber == ENOMEM)
    files.arm(nil)
    #expect(try store.text("key7") == "old")

    try store.setValue("v", forKey: "other", durability: .durable)
    let killed = try TemporaryDirectory()
    try Image(of: directory.store).write(to: killed.store)
    let found = try Store(killed.store).contents()
    #expect(found.count == 5001)
    #expect(found["key7"].map { $0 == Array("old".utf8) } == true)
    try store.close()
  }
}
