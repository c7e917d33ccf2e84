import CairnStore
import Dispatch
import Foundation
import FuzzSupport
import Testing

@testable import Cairn

@Suite("The one live cache of a name")
struct SharedCacheTests {
  let scene = DiskScene()
  let configuration = DiskCacheConfiguration(
    memory: .init())

  /// The directory of a cache of this name.
  private func place(_ name: String) -> String { scene("\(CacheLocation.programName)/\(name)") }

  /// The number of paths below the scene's directory that have a place.
  private var placeCount: Int {
    let directory = Array((scene.directory + "/").utf8)
    return SharedCaches.places.byPath.withLock { $0.keys.count { $0.starts(with: directory) } }
  }

  private func shared<Value: Codable & Sendable>(
    _ name: String, _ change: (inout DiskCacheConfiguration) -> Void = { _ in }
  ) throws(StoreError) -> DiskCache<String, Value> {
    var configuration = configuration
    change(&configuration)
    return try .open(
      .shared(name), configuration: configuration, keyCoder: .string, valueCoder: .json(),
      variables: ["XDG_CACHE_HOME": scene.directory])
  }

  @Test("All callers get the same cache, as the first configured it")
  func same() throws {
    let messages = Record<String>()
    let first: DiskCache<String, Int> = try shared("a") {
      $0.memory?.countLimit = 5
      $0.store.log = DiagnosticLog { messages.add($0.text) }
    }
    #expect(messages.all == [])
    let second: DiskCache<String, Int> = try shared("a") {
      $0.memory?.countLimit = 9
      $0.byteLimit = 1 << 20
    }
    #expect(messages.all.count == 1)
    #expect(messages.all.first?.hasSuffix("are ignored: byteLimit, memory.countLimit") == true)
    #expect(first === second && second.tier.countLimit == 5)
    #expect(first.name == "a" && first.path == place("a"))
    let other: DiskCache<String, Int> = try shared("b")
    let elsewhere: DiskCache<String, Int> = try shared("a") { $0.namespace = "space" }
    #expect(other !== first && elsewhere !== first)
  }

  @Test("A cache of another type is an error that names no values")
  func otherType() throws {
    let first: DiskCache<String, Int> = try shared("a")
    let error = #expect(throws: StoreError.self) {
      let _: DiskCache<String, String> = try shared("a")
    }
    #expect(
      error
        == .unusable(
          path: first.path,
          reason: "it is open as a DiskCache<String, Int>, not a DiskCache<String, String>"))
    withExtendedLifetime(first) {}
  }

  @Test("A cache is released with its last reference, and is then opened anew, as after a close")
  func ends() throws {
    do {
      let cache: DiskCache<String, Int> = try shared("a")
      try cache.setValue(1, forKey: "k")
    }
    let cache: DiskCache<String, Int> = try shared("a")
    #expect(try cache.value(forKey: "k") == 1)
    try cache.close()
    let next: DiskCache<String, Int> = try shared("a")
    #expect(next !== cache)
    #expect(try next.value(forKey: "k") == 1)
  }

  @Test("If a cache cannot be opened, the next caller tries again")
  func failure() throws {
    let before: DiskCache<String, Int> = try shared("a")
    try before.close()
    let holder = try Store(path: place("a"))
    #expect(throws: StoreError.locked(path: place("a"), inThisProcess: true)) {
      let _: DiskCache<String, Int> = try shared("a")
    }
    try holder.close()
    let cache: DiskCache<String, Int> = try shared("a")
    #expect(try cache.count() == 0)
    #expect(throws: StoreError.self) { let _: DiskCache<String, Int> = try shared("x/y") }
  }

  @Test("Many callers at once, while others release the cache, never find it locked")
  func crowd() throws {
    let faults = Record<String>()
    onThreads(6) { thread in
      for round in 0..<60 {
        do {
          let cache: DiskCache<String, Int> = try shared("a")
          try cache.setValue(round, forKey: "\(thread)")
          #expect(try cache.value(forKey: "\(thread)") == round)
        } catch { faults.add("\(error)") }
      }
    }
    #expect(faults.all == [])
  }

  @Test("A closing cache is returned to no caller")
  func closing() throws {
    let cache: DiskCache<String, Int> = try shared("a")
    try cache.setValue(1, forKey: "k")
    let found = Record<DiskCache<String, Int>?>()
    // Called when the store is already closed and the call has not returned.
    cache.tier.observe { event, _ in
      if case .removedAll = event { found.add(try? shared("a")) }
    }
    try cache.close()
    let next = try #require(found.all.first ?? nil)
    #expect(next !== cache && found.all.count == 1)
    #expect(try next.value(forKey: "k") == 1)
    // The end of the close does not drop the new cache, nor does another close of the old one.
    try cache.close()
    try cache.close()
    let last: DiskCache<String, Int> = try shared("a")
    #expect(last === next)
  }

  @Test("After a close, the name is free, and memory is empty")
  func closed() throws {
    let cache: DiskCache<String, Int> = try shared("a")
    try cache.setValue(1, forKey: "k")
    try cache.close()
    #expect(cache.tier.count() == 0)
    #expect(throws: StoreError.closed(path: place("a"))) { try cache.value(forKey: "k") }
    let next: DiskCache<String, Int> = try shared("a")
    #expect(try next.value(forKey: "k") == 1)
  }

  @Test("While some close the cache, others always get one that no other process has open")
  func closingCrowd() throws {
    let faults = Record<String>()
    let closed = Record<Int>()
    onThreads(6) { thread in
      for round in 0..<80 {
        do {
          let cache: DiskCache<String, Int> = try shared("a")
          do {
            try cache.setValue(round, forKey: "\(thread)")
            #expect(try cache.value(forKey: "\(thread)") == round)
            if round % 3 == 0 {
              try cache.close()
              closed.add(thread)
            }
          } catch StoreError.closed {
            // Another thread closed the cache after this one received it.
          }
        } catch { faults.add("\(error)") }
      }
    }
    #expect(faults.all == [])
    #expect(!closed.all.isEmpty)
    let cache: DiskCache<String, Int> = try shared("a")
    #expect(try cache.count() == 6)
  }

  @Test("A second close does not end the wait for the first, whichever began it")
  func secondClose() throws {
    let cache: DiskCache<String, Int> = try shared("a")
    try cache.setValue(1, forKey: "k")
    // This acts like a thread that came first and closes the store last.
    SharedCaches.beginClosing(cache)
    #expect(placeCount == 1)
    try cache.close()
    #expect(placeCount == 0)
    let next: DiskCache<String, Int> = try shared("a")
    // That thread's own close, which comes when the place belongs to another cache.
    try cache.close()
    #expect(placeCount == 1)
    let last: DiskCache<String, Int> = try shared("a")
    #expect(last === next)
  }

  @Test("A close that has not closed the store leaves its place to the one that does")
  func closeUnderWay() throws {
    let cache: DiskCache<String, Int> = try shared("a")
    try cache.setValue(1, forKey: "k")
    // This acts like a first close in progress.
    try #require(try cache.store.closeOnce())
    try cache.close()
    #expect(placeCount == 1)
  }

  @Test("Names of released caches are not kept")
  func places() throws {
    for number in 0..<20 {
      let cache: DiskCache<String, Int> = try shared("\(number)")
      let onDisk: DiskCache<String, Int> = try sharedOnDisk("disk \(number)")
      #expect(placeCount == 2)
      if number % 2 == 0 {
        try cache.close()
        try onDisk.close()
        #expect(placeCount == 0)
      }
      withExtendedLifetime((cache, onDisk)) {}
    }
    // Threads of the store may hold the cache a little longer.
    #expect(comesTrue { placeCount == 0 })
  }

  private func sharedOnDisk<Value: Codable & Sendable>(
    _ name: String
  ) throws(StoreError) -> DiskCache<String, Value> {
    try .open(
      .shared(name), configuration: .init(), keyCoder: .string, valueCoder: .json(),
      variables: ["XDG_CACHE_HOME": scene.directory])
  }

  @Test("A cache on disk alone is shared the same way")
  func onDisk() throws {
    do {
      let first: DiskCache<String, Int> = try sharedOnDisk("a")
      let second: DiskCache<String, Int> = try sharedOnDisk("a")
      #expect(first === second)
      #expect(throws: StoreError.self) { let _: DiskCache<String, String> = try sharedOnDisk("a") }
      try first.setValue(1, forKey: "k")
      try first.close()
      let third: DiskCache<String, Int> = try sharedOnDisk("a")
      #expect(third !== first)
    }
    let both: DiskCache<String, Int> = try shared("a")
    #expect(try both.value(forKey: "k") == 1)
  }

  @Test("The asynchronous forms return the same caches")
  func asynchronous() async {
    await #expect(processExitsWith: .success) {
      let tests = SharedCacheTests()
      unsafe setenv("XDG_CACHE_HOME", tests.scene.directory, 1)
      let tiered = try await DiskCache<String, Int>.open(
        .shared("a"), configuration: tests.configuration, keyCoder: .string, valueCoder: .json())
      let again: DiskCache<String, Int> = try tests.shared("a")
      #expect(tiered === again)
      let onDisk = try await DiskCache<String, Int>.open(
        .shared("b"), configuration: .init(), keyCoder: .string, valueCoder: .json())
      let sameOnDisk: DiskCache<String, Int> = try tests.sharedOnDisk("b")
      #expect(onDisk === sameOnDisk)
      let opened = try await DiskCache<String, Int>.open(
        .path(tests.place("c")), configuration: tests.configuration)
      try await opened.setValue(1, forKey: "k")
      #expect(try opened.value(forKey: "k") == 1)
    }
  }

  @Test("An open that fails does not drop the cache that is closing")
  func failedOpenBesideClose() throws {
    let cache: DiskCache<String, Int> = try shared("a")
    // Another thread may have got this far with its close.
    SharedCaches.beginClosing(cache)
    #expect(throws: StoreError.self) {
      let _: DiskCache<String, Int> = try SharedCaches.cache(at: place("a")) {
        () throws(StoreError) in throw .cancelled
      }
    }
    #expect(placeCount == 1)
    try cache.close()
    #expect(placeCount == 0)
  }

  @Test("A thread that requests the cache while it is opening it gets locked")
  func openerAsks() throws {
    let found = Record<StoreError?>()
    let ended = DispatchSemaphore(value: 0)
    Thread.detachNewThread { [self] in
      _ = try? SharedCaches.cache(at: place("a")) {
        () throws(StoreError) -> DiskCache<String, Int> in
        do throws(StoreError) {
          let _: DiskCache<String, Int> = try shared("a")
          found.add(nil)
        } catch { found.add(error) }
        throw .closed(path: place("a"))
      }
      ended.signal()
    }
    try #require(ended.wait(timeout: .now() + 10) == .success)
    #expect(found.all == [.locked(path: place("a"), inThisProcess: true)])
    let cache: DiskCache<String, Int> = try shared("a")
    #expect(try cache.count() == 0)
  }

  @Test("Many tasks that wait for an open take no thread each")
  func waitingTasks() async {
    await #expect(processExitsWith: .success) {
      let tests = SharedCacheTests()
      unsafe setenv("XDG_CACHE_HOME", tests.scene.directory, 1)
      let opening = Record<Int>()
      let gate = DispatchSemaphore(value: 0)
      let opener = Task.detached {
        try await WorkQueue(width: 1).perform(orThrow: .cancelled) { () throws(StoreError) in
          try SharedCaches.cache(at: tests.place("a")) {
            () throws(StoreError) -> DiskCache<String, Int> in
            opening.add(0)
            gate.wait()
            return try DiskCache.open(
              .path(tests.place("a")), configuration: tests.configuration)
          }
        }
      }
      await eventually { !opening.all.isEmpty }
      let countBefore = try tests.threadCount()
      let tasks = (0..<300).map { _ in
        Task.detached {
          try await DiskCache<String, Int>.open(
            .shared("a"), configuration: tests.configuration, keyCoder: .string,
            valueCoder: .json())
        }
      }
      var most = 0
      for _ in 0..<20 {
        try await Task.sleep(for: .milliseconds(50))
        most = max(most, try tests.threadCount())
      }
      gate.signal()
      let cache = try await opener.value
      for task in tasks { #expect(try await task.value === cache) }
      #expect(most < countBefore + 150)
    }
  }

  private func threadCount() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count
  }
}
