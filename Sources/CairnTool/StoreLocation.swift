import Cairn
import CommandText

/// The location of a store, and how a command opens and closes it.
struct StoreLocation {
  let path: String
  /// How long a command that writes waits for another process to close the store.
  var lockTimeout = Duration.zero

  /// Opens the store for reading, which writes nothing to disk. If another process has the store
  /// locked, reads its current state and says so.
  func read<Result>(on console: Console, _ body: (Store) throws -> Result) throws -> Result {
    let store: Store
    do throws(StoreError) {
      store = try Store(readingAt: path, configuration: Self.quiet(StoreConfiguration()))
    } catch {
      store = try follow(after: error, on: console)
    }
    return try use(store, body)
  }

  /// Opens a store while another process has it locked.
  ///
  /// - Throws: `error` itself, if it is not about a lock.
  func follow(after error: StoreError, on console: Console) throws(StoreError) -> Store {
    guard case .locked(_, _, let processID, let since) = error else { throw error }
    let store = try followed()
    let owner = processID.map { Self.words(for: $0, since: since) } ?? "another process"
    console.note("\(owner) has the store open; this is the store as it is now")
    return store
  }

  /// Opens a store that another process may have open. The returned store sees new writes when
  /// `catchUp` is called.
  func followed() throws(StoreError) -> Store {
    try Store(
      following: path, freshness: .manual, configuration: Self.quiet(StoreConfiguration()))
  }

  /// The process that has a store open: its number, its program and its start time, as far as they
  /// are known.
  static func words(for processID: Int32, since: Timestamp?) -> String {
    let start = since.map { "running since \($0)" }
    let details = [program(of: processID), start].compactMap { $0 }
    return "process \(processID)" + (details.isEmpty ? "" : " (\(details.joined(separator: ", ")))")
  }

  /// The name of the program that a process runs, or `nil` if it is unknown.
  private static func program(of processID: Int32) -> String? {
    guard
      let file = try? SystemCalls.open(
        [UInt8]("/proc/\(processID)/comm".utf8), in: nil, as: .fileForReading),
      let name = try? FileContents.read(file, expecting: 0, byteLimit: 64)
    else { return nil }
    return String(decoding: name, as: UTF8.self).split(separator: "\n").first.map { String($0) }
  }

  /// The configuration for a command that changes many entries or a whole store: no maintenance
  /// beside it, and one sync, when the store is closed.
  static func forMany(createsStore: Bool) -> StoreConfiguration {
    var configuration = StoreConfiguration()
    configuration.maintenanceInterval = nil
    configuration.createsStore = createsStore
    configuration.durability = .process
    return configuration
  }

  /// Opens the store for writing. Closing the store syncs it, so the writes of `body` are durable
  /// when this returns.
  func write<Result>(
    _ configuration: StoreConfiguration, _ body: (Store) throws -> Result
  ) throws -> Result {
    var configuration = Self.quiet(configuration)
    // Use the space bound of a cache, so that a command does not copy records that a cache's owner
    // would leave.
    configuration.spaceBound = 2
    configuration.lockTimeout = lockTimeout
    return try use(Store(path: path, configuration: configuration), body)
  }

  /// A configuration without a log: commands report their findings themselves.
  private static func quiet(_ configuration: StoreConfiguration) -> StoreConfiguration {
    var configuration = configuration
    configuration.log = .silent
    return configuration
  }

  func use<Result>(_ store: Store, _ body: (Store) throws -> Result) throws -> Result {
    let result: Result
    do {
      result = try body(store)
    } catch {
      // The first error shows what happened.
      try? store.close()
      throw error
    }
    try store.close()
    return result
  }

  /// The identity of the store's directory, which must exist.
  func identity() throws -> FileIdentity {
    let bytes = [UInt8](path.utf8)
    do throws(SystemError) {
      let directory = try SystemCalls.open(bytes, in: nil, as: .place)
      return try SystemCalls.status(of: directory).identity
    } catch {
      throw CommandFailure(error, path: bytes)
    }
  }

  /// Whether a directory that is not a store has some of a store's files. If so, it is a damaged
  /// store with missing parts. Otherwise it is something else.
  static func holdsParts(_ path: String) -> Bool {
    names(in: path).contains(where: isName(ofPart:))
  }

  /// Whether salvage can do without the file at a path, judged by its name: any file but the lock.
  static func isSparePart(_ path: String) -> Bool {
    path.split(separator: "/").last.map { $0 != "LOCK" && isName(ofPart: String($0)) } ?? false
  }

  private static func isName(ofPart name: String) -> Bool {
    name == "LOCK" || name == "MANIFEST" || name.hasPrefix("seg-") || name.hasPrefix("ckpt-")
  }

  /// Whether a directory lacks only the file LOCK to be a store, judged by the names.
  static func lacksOnlyLock(_ path: String) -> Bool {
    let names = names(in: path)
    return !names.contains("LOCK") && names.contains("MANIFEST")
  }

  /// The names in a directory; none if it cannot be read.
  private static func names(in path: String) -> [String] {
    guard
      let directory = try? SystemCalls.open(
        [UInt8](path.utf8), in: nil, as: .directoryThroughLinks),
      let names = try? SystemCalls.names(in: directory)
    else { return [] }
    return names.map { String(decoding: $0.bytes, as: UTF8.self) }
  }

  /// Whether a directory is the store's directory or below it. Climbs to the root to find out.
  static func contains(_ directory: Descriptor, store: FileIdentity) throws(SystemError) -> Bool {
    var directory = directory
    var identity = try SystemCalls.status(of: directory).identity
    while identity != store {
      let parent = try SystemCalls.open(
        [UInt8(ascii: "."), UInt8(ascii: ".")], in: directory, as: .place)
      let above = try SystemCalls.status(of: parent).identity
      if above == identity { return false }
      (directory, identity) = (parent, above)
    }
    return true
  }
}
