import Cairn
import Foundation
import Testing

struct Response: Codable, Sendable, Equatable {
  var status: Int
  var headers: [String: String]
  var body: Data
}

/// The response, and how long it may be kept.
private func get(_ url: String) async throws -> (Response, Duration) {
  let page = try await fetch(url)
  return (
    Response(status: 200, headers: ["Content-Length": "5"], body: Data(page.body.utf8)),
    .seconds(300)
  )
}

@Suite("The samples of Coming from another cache or store")
struct MigrationSamples {
  @Test("Instead of NSCache")
  func memory() {
    let image = Image(width: 100, height: 50)
    let thumbnails = MemoryCache<String, Image>(
      configuration: MemoryConfiguration(countLimit: 500, costLimit: 64 << 20))
    thumbnails.setValue(image, forKey: "lake", options: .cost(image.width * image.height * 4))
    let lake = thumbnails.value(forKey: "lake")

    #expect(lake?.width == 100)
    #expect(thumbnails.totalCost() == 20_000)
    #expect(thumbnails.countLimit == 500 && thumbnails.costLimit == 64 << 20)
    #expect(thumbnails.takeValue(forKey: "lake")?.height == 50)
  }

  @Test("Instead of URLCache")
  func responses() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let url = "/about"
        var configuration = DiskCacheConfiguration(
          countLimit: nil, byteLimit: 256 << 20,
          memory: MemoryConfiguration(costLimit: 16 << 20))
        configuration.loadPolicy.staleOnError = .seconds(3600)
        let responses = try await DiskCache<String, Response>.open(
          .name("responses"), configuration: configuration)
        let response = try await responses.value(forKey: url) {
          let (response, maximumAge) = try await get(url)
          return Loaded(response, lifetime: .after(maximumAge))
        }

        #expect(response.body == Data("first".utf8))
        #expect(try responses.value(forKey: url) == response)
        #expect(await Origin.shared.requestCount == 1)
        let end = try #require(try responses.info(forKey: url)?.expires)
        #expect(end < Timestamp.now.advanced(by: .seconds(301)))
        let removed = try await responses.remove { _, info in info.written <= end }
        #expect(removed.count == 1)
      }
    }
  }

  @Test("Instead of a table of blobs")
  func blobs() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let rows = [
          (name: "photos/lake", blob: [UInt8](repeating: 1, count: 300)),
          (name: "notes/1", blob: [2]),
        ]
        try {
          let store = try Store(path: "blobs.cairn")
          try store.write { batch in  // many INSERTs: all or none
            for row in rows { try batch.setValue(row.blob, forKey: row.name) }
          }
          let names = try store.keys(prefix: "photos/")  // … WHERE name LIKE 'photos/%'
          let size = try store.info(forKey: "photos/lake")?.valueByteCount  // SELECT length(blob) …

          #expect(names == [Array("photos/lake".utf8)])
          #expect(size == 300)
          #expect(try store.count() == 2)
          let result = try store.compareAndSet([3], forKey: "notes/1", expecting: nil)
          if case .stored = result { Issue.record("it was there") }
        }()
      }
    }
  }

  @Test("Instead of LMDB")
  func snapshots() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        try {
          let store = try Store(path: "blobs.cairn")
          let snapshot = try store.snapshot()  // mdb_txn_begin(…, MDB_RDONLY, …)
          try store.setValue("new", forKey: "greeting")
          let before = try snapshot.withValue(forKey: "greeting") { String(copying: $0) }
          snapshot.close()  // mdb_txn_abort

          #expect(before == nil)
          #expect(try store.value(forKey: "greeting") == Array("new".utf8))
        }()
      }
    }
  }

  @Test("Instead of Redis")
  func commands() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let store = try await Store(path: "redis.cairn")
        func remaining(_ key: String) throws -> Int64 {
          let expires = try #require(try store.info(forKey: key)?.expires)
          return expires.millisecondsSinceEpoch - Timestamp.now.millisecondsSinceEpoch
        }
        for turn in 1...2 {
          // SETEX session/1 3600 alice
          try await store.setValue("alice", forKey: "session/1", lifetime: .hours(1))

          // SET lock/report worker1 NX EX 30
          let result = try await store.compareAndSet(
            "worker1", forKey: "lock/report", expecting: nil, lifetime: .seconds(30))
          let isMine = if case .stored = result { true } else { false }

          // INCR hits/alice, and EXPIRE hits/alice 60 with the first: a limit of requests a minute
          let hits = try await store.increment(
            forKey: "hits/alice", lifetime: .minutes(1))

          // EXPIRE session/1 7200 and EXPIRE session/1 60: a longer life, and a shorter one
          try await store.setLifetime(.seconds(7200), forKey: "session/1")
          try await store.setLifetime(.minutes(1), forKey: "session/1")

          // SCAN 0 MATCH session/*
          try store.forEachKey(prefix: "session/") { key in
            print(String(copying: key) ?? "")
            return .next
          }

          #expect(isMine == (turn == 1))
          #expect(hits == Int64(turn))
          #expect(try remaining("session/1") < 61_000)
          #expect(try remaining("hits/alice") < 61_000)
          #expect(try store.value(forKey: "session/1") == Array("alice".utf8))
        }
      }
    }
  }
}
