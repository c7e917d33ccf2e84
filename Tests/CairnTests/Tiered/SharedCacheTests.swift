import CairnStore
import Dispatch
import Foundation
import FuzzSupport
import Testing

@testable import Cairn

@Suite("The one live cache of a name")
struct SharedCacheTests {
  let scene = DiskScene()
  let configuration = TieredCacheConfiguration(memory: .unlimited, disk: .unlimited)

  private func shared<Value: Codable & Sendable>(
    _ name: String, _ change: (inout TieredCacheConfiguration) -> Void = { _ in }
  ) throws(CacheError) -> TieredCache<String, Value> {
    var configuration = configuration
    change(&configuration)
    return try .shared(
      name: name, configuration: configuration, keyCoder: .string, valueCoder: .json(),
      variables: ["XDG_CACHE_HOME": scene.directory])
  }

  @Test("All who ask get the same one, as the first configured it")
  func same() throws {
    let first: TieredCache<String, Int> = try shared("a") { $0.memory.countLimit = 5 }
    let second: TieredCache<String, Int> = try shared("a") { $0.memory.countLimit = 9 }
    #expect(first === second && second.memory.countLimit == 5)
    #expect(first.name == "a" && first.path == scene("a"))
    let other: TieredCache<String, Int> = try shared("b")
    let elsewhere: TieredCache<String, Int> = try shared("a") { $0.disk.namespace = "space" }
    #expect(other !== first && elsewhere !== first)
  }

  @Test("One of another type is an error, and names no values")
  func otherType() throws {
    let first: TieredCache<String, Int> = try shared("a")
    let error = #expect(throws: CacheError.self) {
      let _: TieredCache<String, String> = try shared("a")
    }
    #expect(
      error
        == .otherType(
          found: "TieredCache<String, Int>", expected: "TieredCache<String, String>"))
    withExtendedLifetime(first) {}
  }

  @Test("It goes with the last reference, and is opened anew; so it is after a close")
  func ends() throws {
    do {
      let cache: TieredCache<String, Int> = try shared("a")
      try cache.setValue(1, forKey: "k")
    }
    let cache: TieredCache<String, Int> = try shared("a")
    #expect(try cache.value(forKey: "k") == 1)
    try cache.close()
    let next: TieredCache<String, Int> = try shared("a")
    #expect(next !== cache)
    #expect(try next.value(forKey: "k") == 1)
  }

  @Test("Where it cannot be opened, the next one who asks tries again")
  func failure() throws {
    let holder = try Store(path: scene("a"))
    #expect(throws: CacheError.store(.locked(path: scene("a"), inThisProcess: true))) {
      let _: TieredCache<String, Int> = try shared("a")
    }
    try holder.close()
    let cache: TieredCache<String, Int> = try shared("a")
    #expect(try cache.count() == 0)
    #expect(throws: CacheError.self) { let _: TieredCache<String, Int> = try shared("x/y") }
  }

  @Test("Many that ask at once, while others let go, never find it locked")
  func crowd() throws {
    let faults = Record<String>()
    onThreads(6) { thread in
      for round in 0..<60 {
        do {
          let cache: TieredCache<String, Int> = try shared("a")
          try cache.setValue(round, forKey: "\(thread)")
          #expect(try cache.value(forKey: "\(thread)") == round)
        } catch { faults.add("\(error)") }
      }
    }
    #expect(faults.all == [])
  }

  @Test(
    "One that closes is handed out to nobody, whichever tier is closed", arguments: [false, true])
  func closing(closesDisk: Bool) throws {
    let cache: TieredCache<String, Int> = try shared("a")
    try cache.setValue(1, forKey: "k")
    let found = Record<TieredCache<String, Int>?>()
    // Told when the store is closed already, and the call has not returned.
    cache.memory.observe { event, _ in
      if case .removedAll = event { found.add(try? shared("a")) }
    }
    if closesDisk { try cache.disk.close() } else { try cache.close() }
    let next = try #require(found.all.first ?? nil)
    #expect(next !== cache && found.all.count == 1)
    #expect(try next.value(forKey: "k") == 1)
    // The end of the close does not forget the new one, nor does another close of the old one.
    try cache.close()
    try cache.disk.close()
    let last: TieredCache<String, Int> = try shared("a")
    #expect(last === next)
  }

  @Test("A close of the tier on disk closes all of it")
  func diskClosed() throws {
    let cache: TieredCache<String, Int> = try shared("a")
    try cache.setValue(1, forKey: "k")
    try cache.disk.close()
    #expect(cache.memory.count() == 0)
    #expect(throws: CacheError.store(.closed(path: scene("a")))) { try cache.value(forKey: "k") }
    let next: TieredCache<String, Int> = try shared("a")
    #expect(try next.value(forKey: "k") == 1)
  }

  @Test("While some close it, others always get one, which nobody else has open")
  func closingCrowd() throws {
    let faults = Record<String>()
    let closed = Record<Int>()
    onThreads(6) { thread in
      for round in 0..<80 {
        do {
          let cache: TieredCache<String, Int> = try shared("a")
          do {
            try cache.setValue(round, forKey: "\(thread)")
            #expect(try cache.value(forKey: "\(thread)") == round)
            if round % 3 == 0 {
              if thread % 2 == 0 { try cache.close() } else { try cache.disk.close() }
              closed.add(thread)
            }
          } catch CacheError.store(.closed) {
            // By another; not before it was handed out, as far as one can see.
          }
        } catch { faults.add("\(error)") }
      }
    }
    #expect(faults.all == [])
    #expect(!closed.all.isEmpty)
    let cache: TieredCache<String, Int> = try shared("a")
    #expect(try cache.count() == 6)
  }

  @Test("A second close does not end the wait for the first, whichever began to")
  func secondClose() throws {
    let cache: TieredCache<String, Int> = try shared("a")
    try cache.setValue(1, forKey: "k")
    // What another thread does that has come first, and closes the store last.
    SharedCaches.beginClosing(cache.disk)
    #expect(SharedCaches.count(below: scene.directory) == 1)
    try cache.close()
    #expect(SharedCaches.count(below: scene.directory) == 0)
    let next: TieredCache<String, Int> = try shared("a")
    // Its own second close, which comes when the place is another's.
    try cache.close()
    #expect(SharedCaches.count(below: scene.directory) == 1)
    let last: TieredCache<String, Int> = try shared("a")
    #expect(last === next)
  }

  @Test("A close that has not closed the store leaves its place to who does")
  func closeUnderWay() throws {
    let cache: TieredCache<String, Int> = try shared("a")
    try cache.setValue(1, forKey: "k")
    // As long as a first close is at it.
    try #require(try cache.disk.store.closeOnce())
    try cache.close()
    #expect(SharedCaches.count(below: scene.directory) == 1)
  }

  @Test("Names of caches that are gone are not kept")
  func places() throws {
    for number in 0..<20 {
      let cache: TieredCache<String, Int> = try shared("\(number)")
      let onDisk: DiskCache<String, Int> = try sharedOnDisk("disk \(number)")
      #expect(SharedCaches.count(below: scene.directory) == 2)
      if number % 2 == 0 {
        try cache.close()
        try onDisk.close()
        #expect(SharedCaches.count(below: scene.directory) == 0)
      }
      withExtendedLifetime((cache, onDisk)) {}
    }
    // Threads of the store may hold it a little longer.
    #expect(comesTrue { SharedCaches.count(below: scene.directory) == 0 })
  }

  private func sharedOnDisk<Value: Codable & Sendable>(
    _ name: String
  ) throws(CacheError) -> DiskCache<String, Value> {
    try .shared(
      name: name, configuration: .unlimited, keyCoder: .string, valueCoder: .json(),
      variables: ["XDG_CACHE_HOME": scene.directory])
  }

  @Test("A cache on disk alone is shared the same way")
  func onDisk() throws {
    do {
      let first: DiskCache<String, Int> = try sharedOnDisk("a")
      let second: DiskCache<String, Int> = try sharedOnDisk("a")
      #expect(first === second)
      #expect(throws: CacheError.self) { let _: DiskCache<String, String> = try sharedOnDisk("a") }
      #expect(throws: CacheError.self) { let _: TieredCache<String, Int> = try shared("a") }
      try first.setValue(1, forKey: "k")
      try first.close()
      let third: DiskCache<String, Int> = try sharedOnDisk("a")
      #expect(third !== first)
    }
    let both: TieredCache<String, Int> = try shared("a")
    #expect(try both.value(forKey: "k") == 1)
    #expect(throws: CacheError.self) { let _: DiskCache<String, Int> = try sharedOnDisk("a") }
  }

  @Test("The asynchronous forms give the same ones")
  func asynchronous() async throws {
    let variables = ["XDG_CACHE_HOME": scene.directory]
    let tiered = try await TieredCache<String, Int>.openShared(
      name: "a", configuration: configuration, keyCoder: .string, valueCoder: .json(),
      variables: variables)
    let again: TieredCache<String, Int> = try shared("a")
    #expect(tiered === again)
    let onDisk = try await DiskCache<String, Int>.openShared(
      name: "b", configuration: .unlimited, keyCoder: .string, valueCoder: .json(),
      variables: variables)
    let sameOnDisk: DiskCache<String, Int> = try sharedOnDisk("b")
    #expect(onDisk === sameOnDisk)
    let opened = try await TieredCache<String, Int>.open(
      path: scene("c"), configuration: configuration)
    try opened.setValue(1, forKey: "k")
    #expect(try opened.value(forKey: "k") == 1)
  }

  @Test("Where its tier on disk alone was kept, it is locked, which nobody waits for")
  func tierKept() throws {
    var disk: DiskCache<String, Int>? = try (shared("a") as TieredCache<String, Int>).disk
    let start = ContinuousClock.now
    for _ in 0..<2 {
      #expect(throws: CacheError.store(.locked(path: scene("a"), inThisProcess: true))) {
        let _: TieredCache<String, Int> = try shared("a")
      }
      // The place is there as long as the store is open.
      #expect(SharedCaches.count(below: scene.directory) == 1)
    }
    #expect(start.duration(to: .now) < .seconds(8))
    try disk?.setValue(1, forKey: "k")
    disk = nil
    let cache: TieredCache<String, Int> = try shared("a")
    #expect(try cache.value(forKey: "k") == 1)
    try cache.disk.close()
    let next: TieredCache<String, Int> = try shared("a")
    #expect(next !== cache)
  }

  @Test("Who opens it and asks for it meanwhile is told that it is locked")
  func openerAsks() throws {
    let found = Record<CacheError?>()
    let ended = DispatchSemaphore(value: 0)
    Thread.detachNewThread { [self] in
      _ = try? SharedCaches.cache(at: scene("a"), tier: \.disk) {
        () throws(CacheError) -> TieredCache<String, Int> in
        do throws(CacheError) {
          let _: TieredCache<String, Int> = try shared("a")
          found.add(nil)
        } catch { found.add(error) }
        throw .store(.closed(path: scene("a")))
      }
      ended.signal()
    }
    try #require(ended.wait(timeout: .now() + 10) == .success)
    #expect(found.all == [.store(.locked(path: scene("a"), inThisProcess: true))])
    let cache: TieredCache<String, Int> = try shared("a")
    #expect(try cache.count() == 0)
  }

  @Test("Many tasks that wait for one to be opened take no thread each")
  func waitingTasks() async throws {
    let opening = Record<Int>()
    let gate = DispatchSemaphore(value: 0)
    let opener = Task.detached { [self] in
      try await WorkQueue(width: 1).perform(orThrow: .cancelled) { [self] () throws(CacheError) in
        try SharedCaches.cache(at: scene("a"), tier: \.disk) {
          () throws(CacheError) -> TieredCache<String, Int> in
          opening.add(0)
          gate.wait()
          return try TieredCache(path: scene("a"), configuration: configuration)
        }
      }
    }
    await eventually { !opening.all.isEmpty }
    let countBefore = try threadCount()
    let tasks = (0..<300).map { _ in
      Task.detached { [self] in
        try await TieredCache<String, Int>.openShared(
          name: "a", configuration: configuration, keyCoder: .string, valueCoder: .json(),
          variables: ["XDG_CACHE_HOME": scene.directory])
      }
    }
    var most = 0
    for _ in 0..<20 {
      try await Task.sleep(for: .milliseconds(50))
      most = max(most, try threadCount())
    }
    gate.signal()
    let cache = try await opener.value
    for task in tasks { #expect(try await task.value === cache) }
    // Other tests run at the same time.
    #expect(most < countBefore + 150)
  }

  private func threadCount() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count
  }
}
