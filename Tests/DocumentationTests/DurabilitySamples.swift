import CairnStore
import Testing

@Suite("The samples of Choosing a durability, and of the landing page of the store")
struct DurabilitySamples {
  @Test("A store in four lines")
  func landing() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let store = try Store(path: "blobs.cairn")
        try store.setValue("hello", forKey: "greeting", lifetime: .seconds(60))
        let length = try store.withValue(forKey: "greeting") { $0.byteCount }  // no copy
        try store.close()

        #expect(length == 5)
      }
    }
  }

  @Test("A class for the store, and one for a write")
  func classes() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        var configuration = StoreConfiguration()
        configuration.durability = .interval(.seconds(1))
        let store = try await Store(path: "orders.cairn", configuration: configuration)

        try await store.setValue("draft", forKey: "order/1")
        try await store.setValue("paid", forKey: "order/1", durability: .durable)
        try await store.write(durability: .durable) { batch in
          try batch.setValue("sent", forKey: "order/1")
          try batch.setValue("open", forKey: "order/2")
        }

        #expect(try store.value(forKey: "order/1") == Array("sent".utf8))

        for number in 3..<1_000 {
          try await store.setValue("open", forKey: "order/\(number)", durability: .process)
        }
        try await store.sync()

        #expect(try store.count() == 999)

        let recovery = try store.statistics().recovery
        print(recovery.wasClean, recovery.tornByteCount)

        #expect(recovery.wasClean)
        #expect(recovery.tornByteCount == 0)
      }
    }
  }
}
