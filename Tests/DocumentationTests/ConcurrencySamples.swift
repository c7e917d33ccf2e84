import Cairn
import Testing

func addGuest(_ name: String, in store: Store) async throws {
  try await store.update(forKey: "guests") { value in
    (value ?? []) + Array("\(name)\n".utf8)
  }
}

func improveDraft(in store: Store) async throws -> UInt64 {
  while true {
    let entry = try store.entry(forKey: "draft")
    let text = try await improve(entry?.value ?? [])
    let result = try await store.compareAndSet(text, forKey: "draft", expecting: entry?.version)
    if case .stored(let version) = result { return version }
  }
}

func move<Cache: Caching<String, Page>>(
  _ old: String, to new: String, in cache: Cache
) async throws {
  guard let page = try cache.value(forKey: old) else { return }
  try await cache.removeValue(forKey: old)
  try await cache.setValue(page, forKey: new, lifetime: .hours(1), options: .standard)
}

/// Something slow.
func improve(_ text: [UInt8]) async throws -> [UInt8] {
  try await Task.sleep(for: .milliseconds(1))
  return text + [UInt8(ascii: "!")]
}

struct NotEnough: Error {}

@Suite("The samples of Concurrency")
struct ConcurrencySamples {
  @Test("Many tasks write, a batch is written, a snapshot does not change")
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
        try await store.setValue("7", forKey: "name/Anne")

        try await store.write { batch in
          try batch.setValue("Ann", forKey: "user/7")
          try batch.setValue("7", forKey: "name/Ann")
          try batch.removeValue(forKey: "name/Anne")
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

  @Test("Values that depend on each other change together, and no change is lost")
  func transfers() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let store = try await Store(path: "accounts.cairn")
        try await store.view(of: Int.self, prefix: "accounts/").setValue(300, forKey: "Ann")
        @Sendable func transfer() async throws {
          let accounts = store.view(of: Int.self, prefix: "accounts/")
          try await store.write { batch in
            let ann = try accounts.value(forKey: "Ann", in: &batch) ?? 0
            let bob = try accounts.value(forKey: "Bob", in: &batch) ?? 0
            guard ann >= 10 else { throw NotEnough() }
            try accounts.setValue(ann - 10, forKey: "Ann", in: &batch)
            try accounts.setValue(bob + 10, forKey: "Bob", in: &batch)
          }
        }
        let refused = await withTaskGroup(of: Bool.self) { group in
          for _ in 0..<50 {
            group.addTask {
              do { try await transfer() } catch { return error is NotEnough }
              return false
            }
          }
          return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(refused == 20)
        let accounts = store.view(of: Int.self, prefix: "accounts/")
        #expect(try accounts.value(forKey: "Ann") == 0)
        #expect(try accounts.value(forKey: "Bob") == 300)

        let version = try await store.setValue("6", forKey: "config")
        try await store.write { batch in
          try batch.require(version, forKey: "config")  // throws `conflict` if it has another one
          try batch.setValue("7", forKey: "config")
        }
        #expect(try store.value(forKey: "config") == Array("7".utf8))
      }
    }
  }

  @Test("No change is lost")
  func changes() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        var configuration = StoreConfiguration()
        configuration.durability = .process
        let store = try await Store(path: "counters.cairn", configuration: configuration)
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<200 { group.addTask { try await addGuest("Ann", in: store) } }
          for _ in 0..<10 { group.addTask { _ = try await improveDraft(in: store) } }
          try await group.waitForAll()
        }
        #expect(try store.value(forKey: "guests")?.count == 200 * 4)
        #expect(try store.value(forKey: "draft") == Array("!!!!!!!!!!".utf8))
        let version = try await improveDraft(in: store)
        #expect(try store.entry(forKey: "draft")?.version == version)
        let mismatch = try await store.compareAndSet("a", forKey: "draft", expecting: nil)
        #expect(mismatch == .mismatch(current: version))
        let removed = try await store.update(forKey: "guests") { _ in nil }
        #expect(removed == nil)

        let visits = try await store.increment(forKey: "visits")
        let seats = try await store.increment(forKey: "seats", by: -2)

        #expect(visits == 1)
        let count = try store.counter(forKey: "visits")
        #expect(count == 1)
        #expect(seats == -2)
        #expect(try store.keys(prefix: "sea") == [Array("seats".utf8)])
      }
    }
  }

  @Test("Code for any cache works with both")
  func looks() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let pages = try LoadingSamples.pages()
        let home = Page(title: "Home", body: "")
        try await pages.setValue(home, forKey: "/index")

        try await move("/index", to: "/", in: pages)

        #expect(try pages.value(forKey: "/") == home)
        #expect(try !pages.contains("/index"))
        let cache = MemoryCache<String, Page>(configuration: .init())
        cache.setValue(home, forKey: "/index")
        try await move("/index", to: "/", in: cache)
        #expect(cache.keys() == ["/"])
      }
    }
  }

  @Test("Long work is awaited, and events are delivered")
  func perform() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        var evictions: Task<Int, Never>?
        var told: Task<[CacheEvent<String>], Never>?
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

          pages.observe { event in
            switch event {
            case .removed(let key, .evicted(let cause)): print(key, "made room:", cause)
            case .removed(let key, let cause): print(key, "went:", cause)
            default: break
            }
          }

          let summary = try await pages.trim(.toCount(10_000))
          let values = try await pages.perform { try $0.values(forKeys: ["/", "/about"]) }

          #expect(summary.count == 0)
          #expect(values == [Page(title: "Home", body: ""), nil])
          #expect(try await pages.trim(.toCount(5)).count == 16)
          evictions = listener
          told = Task { [events = pages.events()] in
            var told: [CacheEvent<String>] = []
            for await event in events { told.append(event) }
            return told
          }
          try await pages.setValue(Page(title: "Home", body: "new"), forKey: "/")
          try await pages.trim(.toCount(0))
        }
        // The stream ends with the cache.
        #expect(await evictions?.value == 21)
        let events = try #require(await told?.value)
        #expect(
          events.prefix(2) == [.removed(key: "/", cause: .replaced), .inserted(key: "/")])
        let evicted = events.contains {
          if case .removed("/", cause: .evicted) = $0 { true } else { false }
        }
        #expect(evicted)
      }
    }
  }
}
