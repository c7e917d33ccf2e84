import Cairn
import Glibc

/// The file-per-key store as a cache, with the protocols that Cairn's own caches have: code that is generic
/// over them runs on it too.
///
/// Costs are the files' sizes; what a value is given is ignored. It knows no lifetimes, and when a file was
/// written only until it is read: asking for those is an error, as are keys that are no file name. Counting
/// and trimming look at every file.
final class FilePerKeyCache: Caching, Trimming {
  typealias Key = [UInt8]
  typealias Value = [UInt8]
  typealias Failure = BenchFailure

  private struct File {
    var name: String
    var byteCount: Int
    /// Seconds and nanoseconds since the epoch.
    var accessed: (Int, Int)
  }

  private let store: FilePerKeyStore

  init(_ store: FilePerKeyStore) { self.store = store }

  func close() throws(BenchFailure) { try failing { try store.close() } }

  // MARK: Caching

  func count() throws(BenchFailure) -> Int { try files().count }

  func value(forKey key: [UInt8]) throws(BenchFailure) -> [UInt8]? {
    try failing { try key.withBytes { (key) throws in try store.value(forKey: key) } }
  }

  func contains(_ key: [UInt8]) throws(BenchFailure) -> Bool {
    let name = try failing { try key.withBytes { (key) throws in try FileName.encoded(key) } }
    return try file(name) != nil
  }

  /// - Returns: 0: a file has no version.
  @discardableResult
  func setValue(
    _ value: [UInt8], forKey key: [UInt8], options: EntryOptions
  ) throws(BenchFailure) -> UInt64 {
    if ![nil, .standard, .unlimited].contains(options.lifetime) || options.idleLimit != nil {
      throw .unsuited("a file per key has no lifetime")
    }
    try failing {
      try key.withBytes { (key) throws in
        try value.withBytes { (value) throws in try store.setValue(value, forKey: key) }
      }
    }
    return 0
  }

  @discardableResult
  func removeValue(forKey key: [UInt8]) throws(BenchFailure) -> Bool {
    try failing { try key.withBytes { (key) throws in try store.removeValue(forKey: key) } }
  }

  func removeAll() throws(BenchFailure) { _ = try remove(files()) { _ in true } }

  // MARK: Trimming

  func totalCost() throws(BenchFailure) -> Int { try files().reduce(0) { $0 + $1.byteCount } }

  @discardableResult
  func trim(toCount count: Int, order: TrimOrder) throws(BenchFailure) -> RemovalSummary {
    var left = try files()
    left.sort { Self.goesFirst($0, $1, order) }
    var excess = left.count - max(0, count)
    return try remove(left) { _ in
      excess -= 1
      return excess >= 0
    }
  }

  @discardableResult
  func trim(toCost cost: Int, order: TrimOrder) throws(BenchFailure) -> RemovalSummary {
    if cost <= 0 { return try trim(toCount: 0, order: order) }
    var left = try files()
    left.sort { Self.goesFirst($0, $1, order) }
    var sum = left.reduce(0) { $0 + $1.byteCount }
    return try remove(left) { file in
      if sum <= cost { return false }
      sum -= file.byteCount
      return true
    }
  }

  @discardableResult
  func trim(olderThan age: Duration, by basis: AgeBasis) throws(BenchFailure) -> RemovalSummary {
    if age <= .zero { return try trim(toCount: 0, order: .leastRecentlyUsed) }
    guard basis == .access else {
      throw .unsuited("a file that was read does not tell when it was written")
    }
    var now = timespec()
    // SAFETY: the kernel fills the structure.
    unsafe clock_gettime(CLOCK_REALTIME, &now)
    let edge = Duration.seconds(now.tv_sec) + .nanoseconds(now.tv_nsec) - age
    return try remove(files()) { file in
      .seconds(file.accessed.0) + .nanoseconds(file.accessed.1) < edge
    }
  }

  @discardableResult
  func removeExpired() throws(BenchFailure) -> RemovalSummary { RemovalSummary() }

  // MARK: Files

  private static func goesFirst(_ one: File, _ other: File, _ order: TrimOrder) -> Bool {
    if order == .largestFirst && one.byteCount != other.byteCount {
      return one.byteCount > other.byteCount
    }
    return one.accessed < other.accessed
  }

  private func files() throws(BenchFailure) -> [File] {
    var files: [File] = []
    for name in try failing({ try DirectoryTree.names(in: store.path) }) where !name.hasPrefix(".")
    {
      // It may have gone since.
      if let file = try file(name) { files.append(file) }
    }
    return files
  }

  private func file(_ name: String) throws(BenchFailure) -> File? {
    var status = stat()
    let path = store.path + "/" + name
    // SAFETY: the path is passed as a string that outlives the call; the kernel fills the structure.
    guard unsafe lstat(path, &status) == 0 else {
      if errno == ENOENT { return nil }
      throw .lastSystemError("lstat", path)
    }
    return File(
      name: name, byteCount: Int(status.st_size),
      accessed: (status.st_atim.tv_sec, status.st_atim.tv_nsec))
  }

  private func remove(
    _ files: [File], where goes: (File) -> Bool
  ) throws(BenchFailure) -> RemovalSummary {
    var summary = RemovalSummary()
    for file in files where goes(file) {
      let path = store.path + "/" + file.name
      // SAFETY: the path is passed as a string that outlives the call.
      guard unsafe unlink(path) == 0 else {
        if errno == ENOENT { continue }
        throw .lastSystemError("unlink", path)
      }
      summary.count += 1
      summary.cost += file.byteCount
    }
    return summary
  }

  /// Calls the store, which throws nothing but its own failures.
  private func failing<Result>(_ body: () throws -> Result) throws(BenchFailure) -> Result {
    do { return try body() } catch {
      throw error as? BenchFailure ?? .unsuited("\(error)")
    }
  }
}
