import Cairn
import Testing

func increment(_ key: String, in store: Store) async throws {
  try await store.update(forKey: key) { value in
    let count = value.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0
    return Array(String(count + 1).utf8)
  }
}

@Suite("The samples of Concurrency")
struct ConcurrencySamples {
  @Test("Many tasks write, a batch is written, a snapshot stays as it was")
  func store() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let store = try await Store(path: "accounts.cairn")

        try await withThrowingTaskGroup(of: Void.self) { group in
          for number in 0..<8 {
            group.addTask { try await store.setValue("\(number)", forKey: "task/\(number)") }
          }
          try await group.waitForAll()
        }

        #expect(try store.value(forKey: "task/7") == Array("7".utf8))
        try await store.setValue("20", forKey: "transfer/7")

        try await store.write { batch in
          try batch.setValue("90", forKey: "account/1")
          try batch.setValue("110", forKey: "account/2")
          try batch.removeValue(forKey: "transfer/7")
        }

        #expect(try store.count() == 10)

        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        try await store.removeAll()
        let count = try snapshot.count()  // as many as there were

        #expect(count == 10)
        #expect(try store.count() == 0)
      }
    }
  }

  @Test("No increment is lost")
  func increments() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        var configuration = StoreConfiguration()
        configuration.durability = .process
        let store = try await Store(path: "counters.cairn", configuration: configuration)
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<200 { group.addTask { try await increment("visits", in: store) } }
          try await group.waitForAll()
        }
        #expect(try store.value(forKey: "visits") == Array("200".utf8))
      }
    }
  }

  @Test("What takes long is awaited, and events are told")
  func perform() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        var evictions: Task<Int, Never>?
        do {
          let pages = try LoadingSamples.pages()
          for number in 0..<20 {
            try await pages.setValue(Page(title: "\(number)", body: ""), forKey: "/\(number)")
          }
          try await pages.setValue(Page(title: "Home", body: ""), forKey: "/")

          let listener = Task { [events = pages.events()] in
            var evictionCount = 0
            for await event in events {
              if case .removed(_, .evicted) = event { evictionCount += 1 }
            }
            return evictionCount
          }

          let summary = try await pages.trim(toCount: 10_000)
          let values = try await pages.perform { try $0.values(forKeys: ["/", "/about"]) }

          #expect(summary.count == 0)
          #expect(values == [Page(title: "Home", body: ""), nil])
          #expect(try await pages.trim(toCount: 5).count == 16)
          evictions = listener
        }
        // The stream ends with the cache.
        #expect(await evictions?.value == 16)
      }
    }
  }
}
