import Cairn
import CairnLibC
import CairnStore
import Synchronization

/// Situations of forked children.
extension Situations {
  /// Makes every call that a store offers. Describes the first that did not fail with the expected
  /// error.
  private static func firstWrongUse(of store: Store, expecting expected: StoreError) -> String? {
    let uses: [() throws -> Void] = [
      { _ = try store.value(forKey: "key") }, { _ = try store.contains("key") },
      { _ = try store.entry(forKey: "key") }, { _ = try store.count() },
      { _ = try store.statistics() }, { try store.forEachKey { _ in .next } },
      { try store.setValue("child", forKey: "key") }, { try store.removeValue(forKey: "key") },
      { try store.write { try $0.setValue("child", forKey: "key") } }, { try store.removeAll() },
      { try store.sync() }, { try store.trim(.toCount(0)) }, { try store.trim(.toBytes(0)) },
      { try store.trim(.unused(for: .zero)) }, { try store.trim(.expired) },
      { try store.removeValues(forKeys: ["key"]) }, { try store.remove { _, _ in true } },
      { try store.maintain() }, { _ = try store.values(forKeys: ["key", "other"]) },
      { try store.update(forKey: "key") { _ in [1] } }, { try store.compact() },
      { _ = try store.snapshot() }, { try store.setLifetime(.seconds(9), forKey: "key") },
      { _ = try store.compareAndSet("child", forKey: "key", expecting: nil) },
      { try store.withValue(forKey: "key") { _ in } }, { try store.trim(.toFreeDiskSpace(1)) },
    ]
    for (index, use) in uses.enumerated() {
      let error = storeError(use)
      if error != expected { return "use \(index): \(error.map { "\($0)" } ?? "no error")" }
    }
    return nil
  }

  /// A forked child that uses its parent's store gets an error, and the parent continues.
  ///
  /// A child has only the thread that forked. Locks that other threads held stay locked in it, even
  /// those of the language's runtime. So the parent must have no other thread: nothing runs in the
  /// background.
  static func fork(path: String) throws {
    let environment = Environment(fileSystem: SystemFileSystem(), background: IdleQueue())
    func open(_ path: String) throws -> Store {
      try Store(
        path: path, configuration: configuration(), environment: environment, readOnly: false)
    }
    let tasks = try environment.fileSystem.openDirectory(path: "/proc/self/task")
    // An emulator has threads of its own.
    let threadCount = try environment.fileSystem.names(in: tasks).count
    let store = try open(path)
    try store.setValue("before", forKey: "key")
    // Do once, before the fork, what the child will do.
    let closed = try open(path + ".closed")
    try closed.close()
    let wrong = firstWrongUse(of: closed, expecting: .closed(path: closed.path))
    require(wrong == nil, wrong ?? "")
    let other = firstWrongUse(of: closed, expecting: .usedAfterFork(path: path))
    require(other != nil, "no difference between errors")
    require(
      try environment.fileSystem.names(in: tasks).count == threadCount, "threads before the fork")
    runInChild {
      let expected = StoreError.usedAfterFork(path: path)
      if let wrong = firstWrongUse(of: store, expecting: expected) { return wrong }
      return storeError { try store.close() } == expected ? nil : "close"
    }
    require(try store.value(forKey: "key") == Array("before".utf8), "the child changed the value")
    try store.setValue("after", forKey: "key", durability: .durable)
    try store.close()
  }

  /// A child that was forked while a timer's thread waited uses its own store with its own timer.
  static func forkBesideTimer(path: String) throws {
    let store = try Store(path: path, configuration: configuration())
    // Housekeeping is due in a minute.
    try store.setValue("before", forKey: "key")
    // The thread waits, so it holds no lock.
    usleep(200_000)
    runInChild {
      do {
        let own = try Store(path: path + ".child", configuration: configuration())
        // Each scheduled sync gives the timer an earlier due time.
        for number in 0..<10 {
          try own.setValue(
            "own", forKey: "key \(number)", durability: .interval(.milliseconds(2)))
          usleep(10_000)
        }
        try own.close()
        return nil
      } catch { return "\(error)" }
    }
    try store.close()
  }

  /// A child that was forked while another thread held a lock of the process. Its parent's cache
  /// and shared cache do not exist for it, a cache in memory goes on, and it can open its own.
  static func forkBesideCaches(path: String) throws {
    // SAFETY: no other thread reads the environment.
    unsafe setenv("XDG_CACHE_HOME", path + ".home", 1)
    var limits = DiskCacheConfiguration()
    limits.memory = MemoryConfiguration()
    let configuration = limits
    func open(_ place: CachePlace) throws -> DiskCache<String, Int> {
      try DiskCache.open(place, configuration: configuration)
    }
    let cache = try open(.path(path))
    try cache.setValue(1, forKey: "key")
    let shared = try open(.shared("shared"))
    try shared.setValue(1, forKey: "key")
    var maintained = MemoryConfiguration()
    maintained.maintenanceInterval = .milliseconds(500)
    let memory = MemoryCache<Int, Int>(configuration: maintained)
    memory.setValue(1, forKey: 1, lifetime: .milliseconds(1))
    let isMaking = Atomic(false)
    let slow = PerProcess { () -> Made in
      isMaking.store(true, ordering: .sequentiallyConsistent)
      usleep(300_000)
      return Made()
    }
    require(ThreadStarter.system.start { _ = slow.object }, "no thread")
    while !isMaking.load(ordering: .sequentiallyConsistent) { usleep(100) }
    runInChild {
      _ = slow.object
      let expected = StoreError.usedAfterFork(path: path)
      let uses: [() throws -> Void] = [
        { _ = try cache.value(forKey: "key") }, { _ = try cache.entry(forKey: "key") },
        { _ = try cache.contains("key") }, { _ = try cache.peekValue(forKey: "key") },
        { _ = try cache.values(forKeys: ["key"]) },
        { _ = try cache.info(forKey: "key") }, { try cache.setValue(2, forKey: "key") },
        { try cache.removeValue(forKey: "key") }, { _ = try cache.memory?.value(forKey: "key") },
        { try cache.update(forKey: "key") { $0 } }, { try cache.close() },
      ]
      for (index, use) in uses.enumerated() {
        do {
          try use()
          return "use \(index): no error"
        } catch {
          if error as? StoreError != expected { return "use \(index): \(error)" }
        }
      }
      do {
        _ = try open(.shared("shared"))
        return "the child has the parent's shared cache"
      } catch {
        guard case StoreError.locked = error else { return "shared: \(error)" }
      }
      do {
        let own = try open(.path(path + ".child"))
        for number in 0..<100 { try own.setValue(number, forKey: "\(number)") }
        if try own.value(forKey: "7") != 7 { return "a value is missing" }
        try own.close()
      } catch { return "own: \(error)" }
      memory.setValue(2, forKey: 2, lifetime: .milliseconds(1))
      while memory.statistics().count > 0 { usleep(1000) }
      return nil
    }
    require(try cache.value(forKey: "key") == 1, "the child changed the value")
    try cache.close()
    try shared.close()
  }

  /// Nothing, in a class.
  private final class Made: Sendable {}

  /// Runs `body` in a forked child. Fails if it returns a problem, or takes 30 seconds.
  private static func runInChild(_ body: () -> String?) {
    // Swift marks fork unavailable, for good reasons, but this is about fork. SAFETY: the symbol is
    // fork(2), which has this type.
    guard let symbol = unsafe dlsym(dlopen(nil, RTLD_NOW), "fork") else { fail("no fork") }
    typealias Fork = @convention(c) () -> pid_t
    let fork = unsafe unsafeBitCast(symbol, to: Fork.self)
    let child = fork()
    if child == 0 {
      alarm(30)
      guard let problem = body() else { _exit(0) }
      say("in the child: \(problem)")
      _exit(1)
    }
    var status: Int32 = 0
    // SAFETY: the status lives across the call.
    require(unsafe waitpid(child, &status, 0) == child && status == 0, "child: status \(status)")
  }
}
