import CairnLibC
import CairnRepair
import CairnStore
import Dispatch
import Synchronization

/// Runs no jobs. The process then has only its main thread.
struct IdleQueue: BackgroundQueue {
  func run(_ job: @escaping @Sendable () -> Void) {}
  func run(after delay: Duration, _ job: @escaping @Sendable () -> Void) {}
}

/// The number of signals received.
private let ticks = Atomic(0)

/// Situations that need a separate process.
enum Situations {
  /// Holds a store open until standard input ends.
  static func hold(path: String) throws {
    let store = try Store(path: path, configuration: configuration())
    try store.setValue("held", forKey: "held")
    say("open")
    while readLine() != nil {}
    try store.close()
  }

  /// Writes new keys until the disk is full, and ends as if killed.
  static func fill(path: String) throws {
    var configuration = configuration()
    configuration.segmentByteLimit = 64 << 20
    let store = try Store(path: path, configuration: configuration)
    let value = [UInt8](repeating: 1, count: 1000)
    var error: StoreError?
    var number = 0
    while error == nil {
      error = storeError {
        try store.setValue(value, forKey: "key\(number)", durability: .process)
      }
      number += 1
    }
    guard case .noSpace(_, _, .disk) = error else { fail("\(String(describing: error))") }
    _exit(0)
  }

  /// Makes a store with all kinds of contents, under a umask.
  static func umask(path: String, mask: mode_t) throws {
    _ = CairnLibC.umask(mask)
    let store = try Store(path: path, configuration: configuration())
    for number in 0..<100 {
      try store.setValue([UInt8](repeating: 1, count: 2000), forKey: "key \(number)")
    }
    try store.close()
  }

  /// Uses a store in a process whose descriptors 0, 1 and 2 are free.
  static func withoutStandardStreams(path: String) throws {
    for descriptor in Int32(0)...2 { close(descriptor) }
    for round in 0..<2 {
      let store = try Store(path: path, configuration: configuration())
      for number in 0..<100 {
        try store.setValue([UInt8](repeating: 1, count: 2000), forKey: "key \(number)")
      }
      try store.setValue("v", forKey: "durable", durability: .durable)
      for descriptor in Int32(0)...2 {
        // A file opened in the background may have one of these numbers until it is moved to a
        // higher one.
        for _ in 0..<2000 where fcntl(descriptor, F_GETFD) != -1 { usleep(1000) }
        if fcntl(descriptor, F_GETFD) != -1 { exit(10 + descriptor) }
      }
      if round == 0 { try store.removeAll() }
      try store.close()
    }
  }

  /// Opens, reads and writes as another user, and reports each result.
  static func asUser(path: String, identifier: uid_t) throws {
    // If this process is not root, it already runs as the requested user.
    require(setgid(identifier) == 0 || getuid() != 0, "no other group")
    require(setuid(identifier) == 0, "no other user")
    do {
      let store = try Store(path: path, configuration: configuration())
      say("open: done")
      say("read: \(storeError { _ = try store.value(forKey: "key") }.map { "\($0)" } ?? "done")")
      let error = storeError { try store.setValue("v", forKey: "new") }
      say("write: \(error.map { "\($0)" } ?? "done")")
    } catch {
      say("open: \(error)")
    }
  }

  /// Exercises a store while at least a thousand signals interrupt the system calls.
  static func signals(path: String) throws {
    // Initialised here, because a signal handler must not initialise a global.
    require(ticks.load(ordering: .relaxed) == 0, "ticks")
    let handler: @convention(c) (Int32) -> Void = { _ in
      // If the signals last for minutes, some call keeps restarting and never finishes.
      if ticks.add(1, ordering: .relaxed).newValue > 500_000 { _exit(3) }
    }
    // The handler has no SA_RESTART.
    var action = sigaction()
    #if canImport(Darwin)
      unsafe action.__sigaction_u.__sa_handler = handler
    #else
      unsafe action.__sigaction_handler.sa_handler = handler
    #endif
    require(unsafe sigaction(SIGALRM, &action, nil) == 0, "sigaction")
    ualarm(200, 200)
    var round = 0
    // A fast machine finishes a few rounds before many signals arrive.
    while round < 5 || ticks.load(ordering: .relaxed) < 1000 {
      defer { round += 1 }
      let store = try Store(path: path, configuration: configuration())
      for number in 0..<60 {
        try store.setValue(
          [UInt8](repeating: 1, count: 3000), forKey: "key \(number)",
          durability: number % 8 == 0 ? .durable : .process)
      }
      try store.setValue([UInt8](repeating: 1, count: 2_000_000), forKey: "large")
      require(try store.count() == 61, "keys are missing")
      require(round < 1000, "no signals come")
      if round % 2 == 1 { try store.removeAll() }
      try store.close()
      let report = try Store.verify(path: path)
      require(report.errors.isEmpty, "\(report.errors)")
    }
  }

  /// Fills a store up to a file-size limit, which must cause an error, not a signal.
  static func fileSizeLimit(path: String, byteCount: UInt64, ignoring: Bool) throws {
    if ignoring { signal(SIGXFSZ, SIG_IGN) }
    var configuration = configuration()
    configuration.segmentByteLimit = 4 << 20
    let store = try Store(path: path, configuration: configuration)
    try store.setValue("small", forKey: "small")
    var limit = rlimit()
    let resource = resourceNumber(RLIMIT_FSIZE)
    require(unsafe getrlimit(resource, &limit) == 0, "getrlimit")
    limit.rlim_cur = rlim_t(byteCount)
    require(unsafe setrlimit(resource, &limit) == 0, "setrlimit")
    let value = [UInt8](repeating: 1, count: 5000)
    var written = 0
    var error: StoreError?
    while error == nil && written < 10_000 {
      error = storeError { try store.setValue(value, forKey: "key \(written)") }
      if error == nil { written += 1 }
    }
    guard case .noSpace(_, _, .fileSize) = error else { fail("\(String(describing: error))") }
    require(written > 5, "only \(written) values")
    // A value beyond the limit, in a separate segment.
    guard
      case .noSpace(_, _, .fileSize) = storeError({
        try store.setValue([UInt8](repeating: 1, count: 8 << 20), forKey: "huge")
      })
    else { fail("no error for a huge value") }
    require(try store.value(forKey: "key 0") == value, "a read fails")
    try require(try store.count() == written + 1, "\(written) written, \(try store.count()) there")
    require(try store.removeValue(forKey: "key 1"), "a removal fails")
    require(try store.removeValue(forKey: "key 2", durability: .durable), "a durable removal fails")
    limit.rlim_cur = limit.rlim_max
    require(unsafe setrlimit(resource, &limit) == 0, "setrlimit")
    for number in 0..<200 { try store.setValue(value, forKey: "after \(number)") }
    try store.close()
    let again = try Store(path: path, configuration: configuration)
    try require(try again.count() == written + 1 - 2 + 200, "\(try again.count()) keys after all")
    try again.close()
    require(try Store.verify(path: path).errors.isEmpty, "verify")
  }

  /// Uses a store with pending maintenance while no thread can be started.
  static func threadLimit(path: String) throws {
    var configuration = configuration()
    configuration.maintenanceInterval = .milliseconds(1)
    // With this durability, an open prepares nothing in the background, which would need a thread.
    configuration.durability = .durable
    // The usual maintenance queue, and no other thread whose stack could be reused.
    let environment = Environment(
      fileSystem: SystemFileSystem(), background: IdleQueue(),
      maintenance: Environment.system().maintenance)
    let first = try Store(
      path: path, configuration: configuration,
      environment: Environment(fileSystem: SystemFileSystem(), background: IdleQueue()),
      readOnly: false)
    try first.setValue("before", forKey: "before")
    try first.close()
    let store = try Store(
      path: path, configuration: configuration, environment: environment, readOnly: false)
    require(try store.value(forKey: "before") != nil, "a value is lost")
    // Free memory for the heap. The allocation above it prevents its return to the system.
    var memory = (0..<64).map { _ in [UInt8](repeating: 1, count: 32 << 10) }
    let above = [UInt8](repeating: 1, count: 100)
    memory = []
    defer { withExtendedLifetime((memory, above)) {} }
    var limit = rlimit()
    let resource = resourceNumber(RLIMIT_AS)
    require(unsafe getrlimit(resource, &limit) == 0, "getrlimit")
    let usual = limit.rlim_cur
    // The limit is already exceeded, so no new thread can get a stack.
    limit.rlim_cur = 1 << 20
    require(unsafe setrlimit(resource, &limit) == 0, "setrlimit")
    try store.setValue("value", forKey: "short", lifetime: .seconds(0))
    usleep(50_000)
    let indexedKeyCount = try store.statistics().count
    limit.rlim_cur = usual
    require(unsafe setrlimit(resource, &limit) == 0, "setrlimit")
    require(indexedKeyCount == 2, "\(indexedKeyCount) keys are left without a thread")
    try store.maintain()
    require(try store.statistics().count == 1, "an expired key is left")
    require(try store.value(forKey: "before") != nil, "a value is lost")
    try store.close()
  }

  /// Opens and uses a store under each limit on descriptors, from far too low to sufficient.
  ///
  /// - Parameter timersRun: whether Dispatch has already set up its timers, for which it needs
  ///   descriptors.
  static func descriptorLimit(path: String, timersRun: Bool) throws {
    // Inherited descriptors would count against the limit.
    for descriptor in Int32(3)..<1024 { close(descriptor) }
    if timersRun {
      let done = DispatchSemaphore(value: 0)
      DispatchQueue.global().asyncAfter(deadline: .now()) { done.signal() }
      done.wait()
    }
    func openDescriptors() -> [Int32] { (0..<512).filter { fcntl($0, F_GETFD) != -1 } }
    func target(of descriptor: Int32) -> String {
      var bytes = [CChar](repeating: 0, count: 4096)
      let count = unsafe readlink("/proc/self/fd/\(descriptor)", &bytes, bytes.count)
      return String(
        decoding: bytes.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
    var limit = rlimit()
    let resource = resourceNumber(RLIMIT_NOFILE)
    require(unsafe getrlimit(resource, &limit) == 0, "getrlimit")
    let usual = limit.rlim_cur
    func set(_ number: rlim_t) {
      limit.rlim_cur = number
      require(unsafe setrlimit(resource, &limit) == 0, "setrlimit")
    }
    // The runtime opens some files once, at first use.
    try Store(path: path, configuration: configuration()).close()
    var known: [String: Int] = [:]
    let before = openDescriptors()
    var completed = 0
    for number in rlim_t(3)...64 {
      set(number)
      let backup = "\(path).backup-\(number)"
      let error = storeError {
        let store = try Store(path: path, configuration: configuration())
        defer { try? store.close() }
        for index in 0..<40 {
          try store.setValue([UInt8](repeating: UInt8(number), count: 4000), forKey: "key \(index)")
          known["key \(index)"] = Int(number)
        }
        let snapshot = try store.snapshot()
        for index in 0..<20 {
          try store.setValue([UInt8](repeating: UInt8(number), count: 9000), forKey: "key \(index)")
        }
        try store.compact()
        require(try snapshot.value(forKey: "key 0")?.count == 4000, "the snapshot has changed")
        try store.backup(to: backup)
        completed += 1
      }
      set(usual)
      if error == nil {
        let copy = try Store(readingAt: backup)
        require(try copy.count() == 40, "the backup is not whole")
        try copy.close()
      } else {
        require(
          unsafe rmdir(backup) == 0 || errno == ENOENT, "a failed backup leaves something")
      }
      if let error {
        guard case .system(let failure) = error, failure.errorNumber == EMFILE else {
          fail("with \(number) descriptors: \(error)")
        }
      }
      let store = try Store(path: path, configuration: configuration())
      for (key, number) in known {
        let first = try store.value(forKey: key)?.first
        require(first.map { Int($0) >= number } ?? false, "\(key) of \(number) is \(first ?? 0)")
      }
      // Each segment takes a descriptor, so segments must not accumulate.
      try store.removeAll()
      known = [:]
      try store.close()
    }
    require(completed > 0, "no limit was enough")
    // Background jobs may briefly hold the last descriptors.
    for _ in 0..<1000 where openDescriptors().count > before.count { usleep(1000) }
    // Dispatch keeps its timers open.
    let left = Set(openDescriptors()).subtracting(before).filter {
      !timersRun || target(of: $0) != "anon_inode:[timerfd]"
    }
    require(left.isEmpty, "left open: \(left.map(target))")
  }

  /// Exercises a store of many segments in a process that may have 64 descriptors.
  static func manySegments(path: String, count segmentCount: Int, byCalls: Bool) throws {
    // Inherited descriptors would count against the limit.
    for descriptor in Int32(3)..<1024 { close(descriptor) }
    var limit = rlimit()
    let resource = resourceNumber(RLIMIT_NOFILE)
    require(unsafe getrlimit(resource, &limit) == 0, "getrlimit")
    limit.rlim_cur = 64
    require(unsafe setrlimit(resource, &limit) == 0, "setrlimit")
    var configuration = configuration()
    configuration.mapsFiles = !byCalls
    // Failures in the background are only logged.
    configuration.log = DiagnosticLog(from: .warning) { fail("\($0)") }
    let count = 2 * segmentCount
    func value(_ number: Int) -> [UInt8] { [UInt8](repeating: UInt8(number & 255), count: 30_000) }
    var store = try Store(path: path, configuration: configuration)
    for number in 0..<count { try store.setValue(value(number), forKey: "key \(number)") }
    require(try store.statistics().segments.count >= segmentCount, "too few segments")
    for number in 0..<count {
      require(try store.value(forKey: "key \(number)") == value(number), "a value is lost")
    }
    try store.close()
    store = try Store(path: path, configuration: configuration)
    try require(try store.count() == count, "\(try store.count()) keys after a reopening")
    let snapshot = try store.snapshot()
    try snapshot.backup(to: path + ".backup")
    // With system calls, a snapshot's files stay open after they are unlinked.
    if byCalls { snapshot.close() }
    for number in 0..<count where number % 5 != 0 {
      require(try store.removeValue(forKey: "key \(number)"), "a removal has failed")
    }
    if !byCalls {
      try store.compact()
      for number in stride(from: 0, to: count, by: 7) {
        let found = try snapshot.value(forKey: "key \(number)")
        require(found == value(number), "the snapshot changes")
      }
    }
    snapshot.close()
    try store.compact()
    require(try store.statistics().segments.count < segmentCount / 2, "nothing was compacted")
    for number in stride(from: 0, to: count, by: 5) {
      require(try store.value(forKey: "key \(number)") == value(number), "a value is lost")
    }
    try store.close()
    for path in [path, path + ".backup"] {
      let report = try Store.verify(path: path)
      require(report.errors.isEmpty, "\(report.errors)")
    }
    store = try Store(readingAt: path + ".backup", configuration: configuration)
    try require(try store.count() == count, "\(try store.count()) keys in the backup")
    try store.close()
    store = try Store(path: path, configuration: configuration)
    try require(try store.count() == count / 5, "\(try store.count()) keys in the end")
    try store.removeAll()
    try store.close()
  }
}
