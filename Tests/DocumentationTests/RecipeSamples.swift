import Cairn
import CairnRepair
import Foundation
import Synchronization
import Testing

struct Session: Codable, Sendable, Equatable {
  var user: String
  var cart: [String] = []
}

struct JobQueue: Sendable {
  let store: Store
  let jobs, leases: StoreView<String>
  let ends: StoreView<Int>

  init(in store: Store) {
    self.store = store
    jobs = store.view(of: String.self, prefix: "job/")
    leases = store.view(of: String.self, prefix: "lease/")
    ends = store.view(of: Int.self, prefix: "end/")
  }

  func add(_ job: String) async throws {
    try await store.write { batch in
      let tail = try ends.value(forKey: "tail", in: &batch) ?? 0
      try jobs.setValue(job, forKey: "\(tail)", in: &batch)
      try ends.setValue(tail + 1, forKey: "tail", in: &batch)
    }
  }

  func claim(by worker: String) async throws -> (number: Int, job: String)? {
    try await store.write { batch in
      let head = try ends.value(forKey: "head", in: &batch) ?? 0
      let tail = try ends.value(forKey: "tail", in: &batch) ?? 0
      for number in head..<tail {
        guard let job = try jobs.value(forKey: "\(number)", in: &batch),
          try leases.value(forKey: "\(number)", in: &batch) == nil
        else { continue }  // finished, or claimed
        try leases.setValue(worker, forKey: "\(number)", lifetime: .minutes(5), in: &batch)
        return (number, job)
      }
      return nil
    }
  }

  /// Returns false if the lease has ended.
  func finish(_ number: Int, by worker: String) async throws -> Bool {
    try await store.write { batch in
      guard try leases.value(forKey: "\(number)", in: &batch) == worker else { return false }
      try leases.removeValue(forKey: "\(number)", in: &batch)
      try jobs.removeValue(forKey: "\(number)", in: &batch)
      let tail = try ends.value(forKey: "tail", in: &batch) ?? 0
      var head = try ends.value(forKey: "head", in: &batch) ?? 0
      while head < tail, try jobs.value(forKey: "\(head)", in: &batch) == nil { head += 1 }
      try ends.setValue(head, forKey: "head", in: &batch)
      return true
    }
  }
}

@Suite("The samples of Recipes")
struct RecipeSamples {
  @Test("A session ends after its last request, and when its user logs out")
  func sessions() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let token = "4711"

        var configuration = StoreConfiguration()
        configuration.durability = .interval(.seconds(1))
        let store = try await Store(path: "app.cairn", configuration: configuration)
        let sessions = store.view(of: Session.self, prefix: "session/")

        // Log in.
        try await sessions.setValue(Session(user: "alice"), forKey: token, lifetime: .minutes(30))
        // Each request.
        let session = try sessions.value(forKey: token)
        try await sessions.setLifetime(.minutes(30), forKey: token)
        // A change.
        try await sessions.update(forKey: token) { session in
          session.map { Session(user: $0.user, cart: $0.cart + ["book"]) }
        }
        // Log out.
        try await sessions.removeValue(forKey: token, durability: .durable)

        #expect(session == Session(user: "alice"))
        #expect(try sessions.value(forKey: token) == nil)

        // The same later, by a clock that the test moves.
        try await store.close()
        let clock = ManualClock()
        configuration.clock = clock
        let later = try await Store(path: "app.cairn", configuration: configuration)
          .view(of: Session.self, prefix: "session/")
        #expect(try later.value(forKey: token) == nil)
        try await later.setValue(Session(user: "bob"), forKey: token, lifetime: .minutes(30))
        for _ in 0..<10 {
          clock.advance(by: .seconds(1_500))
          #expect(try later.value(forKey: token)?.user == "bob")
          #expect(try await later.setLifetime(.minutes(30), forKey: token))
        }
        clock.advance(by: .seconds(1_500))
        try await later.update(forKey: token) { session in
          session.map { Session(user: $0.user, cart: $0.cart + ["book"]) }
        }
        #expect(try later.value(forKey: token)?.cart == ["book"])
        clock.advance(by: .seconds(301))
        #expect(try later.value(forKey: token) == nil)
        #expect(try await !later.setLifetime(.minutes(30), forKey: token))
        #expect(try later.value(forKey: token) == nil)
      }
    }
  }

  @Test("Thumbnails stay under a limit on disk, as du counts it")
  func thumbnails() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let photo = "lake"
        let madeCount = Mutex(0)
        @Sendable func makeThumbnail(_ photo: String, width: Int) async throws -> Data {
          madeCount.withLock { $0 += 1 }
          return Data(repeating: UInt8(width), count: 64 << 10)
        }

        let thumbnails = try await DiskCache<String, Data>.open(
          .name("thumbnails"), configuration: DiskCacheConfiguration(diskByteLimit: 64 << 20))

        let thumbnail = try await thumbnails.value(forKey: "\(photo)/200") {
          try await makeThumbnail(photo, width: 200)
        }

        #expect(thumbnail.count == 64 << 10)
        for photo in [photo] + (0..<1_200).map({ "photo \($0)" }) {
          _ = try await thumbnails.value(forKey: "\(photo)/200") {
            try await makeThumbnail(photo, width: 200)
          }
        }
        #expect(madeCount.withLock { $0 } == 1_201)
        #expect(try !thumbnails.contains("lake/200"))
        #expect(try thumbnails.contains("photo 1199/200"))
        let byteCount = try RecipeSamples.diskUsage(of: thumbnails.path)
        #expect(byteCount <= 64 << 20)
        #expect(byteCount > 56 << 20)
      }
    }
  }

  /// What `du` prints, in bytes.
  private static func diskUsage(of path: String) throws -> Int {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["du", "-s", "-k", path]
    process.standardOutput = output
    try process.run()
    process.waitUntilExit()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    return try #require(Int(text.prefix { $0.isNumber })) << 10
  }

  @Test("A page is sent once if it does not change, and is returned stale while its origin fails")
  func pages() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let isDown = Mutex(false)
        let sentCount = Mutex(0)
        @Sendable func fetch(_ url: String, ifNoneMatch etag: [UInt8]?) async throws -> Answer {
          if isDown.withLock({ $0 }) { throw URLError(.badServerResponse) }
          if url == "/none" { return .gone }
          if etag == Array("v1".utf8) { return .notModified }
          sentCount.withLock { $0 += 1 }
          return .page(Page(title: url, body: "first"), etag: Array("v1".utf8))
        }

        var configuration = DiskCacheConfiguration(
          byteLimit: 1 << 30, memory: MemoryConfiguration(costLimit: 64 << 20))
        configuration.loadPolicy.staleOnError = .seconds(86_400)

        let clock = ManualClock()
        configuration.store.clock = clock

        let pages = try await DiskCache<String, Page>.open(
          .name("pages"), configuration: configuration)

        func page(_ url: String) async throws -> Loaded<Page>? {
          try await pages.loaded(forKey: url) { prior in
            let answer = try await fetch(url, ifNoneMatch: prior?.metadata)
            switch (answer, prior) {
            case (.notModified, let prior?): return prior.notModified(lifetime: .minutes(1))
            case (.page(let page, let etag), _):
              return .loaded(page, options: EntryOptions(lifetime: .minutes(1), metadata: etag))
            default: return .absent(for: .seconds(5))
            }
          }
        }

        #expect(try await page("/none") == nil)
        #expect(try await page("/about")?.isStale == false)
        clock.advance(by: .seconds(90))
        #expect(try await page("/about")?.isStale == false)
        #expect(sentCount.withLock { $0 } == 1)

        isDown.withLock { $0 = true }
        clock.advance(by: .seconds(3_600))
        let old = try #require(try await page("/about"))
        #expect(old.isStale)
        #expect(old.age >= .seconds(3_600))
        #expect(old.value.body == "first")
        clock.advance(by: .seconds(86_400))
        await #expect(throws: URLError.self) { try await page("/about") }
      }
    }
  }

  @Test("A job is claimed by one worker, and by the next one when the lease has ended")
  func jobs() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let clock = ManualClock()
        var configuration = StoreConfiguration()
        configuration.clock = clock
        let queue = JobQueue(
          in: try await Store(path: "jobs.cairn", configuration: configuration))
        for number in 0..<100 { try await queue.add("job \(number)") }

        // Eight workers finish five jobs each, claim another one, and die.
        var done = try await withThrowingTaskGroup(of: [String].self) { group in
          for worker in 0..<8 {
            group.addTask {
              var done: [String] = []
              for _ in 0..<5 {
                guard let claim = try await queue.claim(by: "\(worker)") else { break }
                done.append(claim.job)
                #expect(try await queue.finish(claim.number, by: "\(worker)"))
              }
              _ = try await queue.claim(by: "\(worker)")
              return done
            }
          }
          return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(Set(done).count == 40)
        func work(on job: String) async throws { done.append(job) }

        let follower = try await Store(following: "jobs.cairn")
        let unfinishedCount = try follower.keys(prefix: "job/").count

        #expect(unfinishedCount == 60)

        clock.advance(by: .seconds(299))

        while let (number, job) = try await queue.claim(by: "worker 1") {
          try await work(on: job)
          _ = try await queue.finish(number, by: "worker 1")
        }

        #expect(done.count == 92)
        clock.advance(by: .seconds(2))
        let (number, job) = try #require(try await queue.claim(by: "worker 2"))
        try await work(on: job)
        for late in 0..<8 { #expect(try await !queue.finish(number, by: "\(late)")) }
        #expect(try await queue.finish(number, by: "worker 2"))
        while let (number, job) = try await queue.claim(by: "worker 2") {
          try await work(on: job)
          #expect(try await queue.finish(number, by: "worker 2"))
        }
        #expect(Set(done).count == 100)
        #expect(try queue.ends.value(forKey: "head") == 100)
        #expect(try follower.keys(prefix: "job/").isEmpty)
      }
    }
  }

  @Test("A client has a hundred requests a minute")
  func requests() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let clock = ManualClock()
        var configuration = StoreConfiguration()
        configuration.clock = clock
        let store = try await Store(path: "app.cairn", configuration: configuration)

        func isAllowed(_ client: String) async throws -> Bool {
          let requestCount = try await store.increment(
            forKey: "requests/\(client)", lifetime: .minutes(1), durability: .process)
          return requestCount <= 100
        }

        for _ in 0..<100 { #expect(try await isAllowed("alice")) }
        clock.advance(by: .seconds(59))
        #expect(try await !isAllowed("alice"))
        #expect(try await isAllowed("bob"))
        clock.advance(by: .seconds(2))
        #expect(try await isAllowed("alice"))
        #expect(try store.counter(forKey: "requests/alice") == 1)
      }
    }
  }

  @Test("Followers see the flags of a writer that was killed, and those of the next one")
  func flags() async throws {
    let path = Self.path(ofParent: getpid())
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(throws: StoreError.self) { try Store(following: path) }
    await #expect(processExitsWith: .signal(SIGKILL)) {
      let path = RecipeSamples.path(ofParent: getppid())

      let store = try await Store(path: path)
      let flags = store.view(of: Bool.self, prefix: "flag/")
      try await store.write { batch in
        try flags.setValue(true, forKey: "new checkout", in: &batch)
        try flags.setValue(false, forKey: "old checkout", in: &batch)
      }

      kill(getpid(), SIGKILL)
    }

    let follower = try await Store(following: path, freshness: .interval(.seconds(1)))
    let flags = follower.view(of: Bool.self, prefix: "flag/")
    let isNew = try flags.value(forKey: "new checkout") ?? false

    #expect(isNew)

    await #expect(processExitsWith: .signal(SIGKILL)) {
      let store = try await Store(path: RecipeSamples.path(ofParent: getppid()))
      try await store.view(of: Bool.self, prefix: "flag/")
        .setValue(false, forKey: "new checkout", durability: .process)
      kill(getpid(), SIGKILL)
    }
    try await follower.catchUp()
    #expect(try flags.value(forKey: "new checkout") == false)

    await #expect(processExitsWith: .success) {
      let store = try await Store(path: RecipeSamples.path(ofParent: getppid()))
      try await store.view(of: Bool.self, prefix: "flag/").setValue(true, forKey: "dark mode")
      try await store.close()
    }
    try await follower.catchUp()
    #expect(try flags.value(forKey: "dark mode") == true)
    #expect(try flags.value(forKey: "old checkout") == false)
  }

  /// The store of the writers and the follower of `flags`. The writers are exit tests, which know
  /// their parent.
  private static func path(ofParent processID: pid_t) -> String {
    NSTemporaryDirectory() + "/cairn-recipe-samples.\(processID)"
  }

  @Test("A backup is brought up to date, verified and restored")
  func backups() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let store = try await Store(path: "app.cairn")
        for number in 0..<1_000 {
          try await store.setValue("\(number)", forKey: "\(number)", durability: .process)
        }
        let first = try await store.backup(to: "backup.cairn")
        try await store.setValue("new", forKey: "new")

        let report = try await store.backup(to: "backup.cairn")
        let check = try await Store.verify(path: "backup.cairn")
        print(report, check.damage.isEmpty ? "sound" : "damaged")

        #expect(report.byteCount < first.byteCount / 100)
        #expect(check.damage.isEmpty)
        try await store.close()

        try FileManager.default.moveItem(atPath: "app.cairn", toPath: "damaged.cairn")
        try FileManager.default.copyItem(atPath: "backup.cairn", toPath: "app.cairn")
        let restored = try await Store(path: "app.cairn")

        #expect(try restored.value(forKey: "new") == Array("new".utf8))
        #expect(try restored.count() == 1_001)
        try await restored.setValue("newer", forKey: "new")
        let next = try await restored.backup(to: "backup.cairn")
        #expect(next.byteCount < first.byteCount / 100)
      }
    }
  }
}

/// A clock that a test moves.
private final class ManualClock: WallClock {
  private let time = Mutex(Timestamp.now)

  func now() -> Timestamp { time.withLock { $0 } }

  func advance(by duration: Duration) {
    time.withLock { $0 = $0.advanced(by: duration) }
  }
}
