import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

extension StoreConfiguration {
  /// The defaults without a log, for tests that provoke failures.
  static var quiet: StoreConfiguration {
    var configuration = StoreConfiguration()
    configuration.log = .silent
    return configuration
  }

  /// The smallest segments, so that tests see many of them, and no syncs that a test did not
  /// request.
  static func small(
    durability: Durability = .process, clock: (any WallClock)? = nil,
    _ change: (inout StoreConfiguration) -> Void = { _ in }
  ) -> StoreConfiguration {
    var configuration = quiet
    configuration.durability = durability
    configuration.segmentByteLimit = 64 << 10
    if let clock { configuration.clock = clock }
    change(&configuration)
    return configuration
  }
}

extension Store {
  /// Opens a store for a test.
  convenience init(
    _ path: String, _ configuration: StoreConfiguration = .small(),
    fileSystem: any FileSystem = SystemFileSystem(),
    background: any BackgroundQueue = ThreadBackgroundQueue(), readOnly: Bool = false
  ) throws(StoreError) {
    var environment = Environment(fileSystem: fileSystem, background: background)
    // If the test itself runs the jobs, nothing happens while a writer sleeps.
    if background is ManualBackgroundQueue { environment.pause = { _ in } }
    try self.init(
      path: path, configuration: configuration, environment: environment, readOnly: readOnly)
  }

  /// The value of a key as text.
  func text(_ key: String) throws -> String? {
    try value(forKey: key).map { String(decoding: $0, as: UTF8.self) }
  }

  /// When the lifetimes end, for the keys whose values have one.
  func ends() throws -> [String: Timestamp] {
    var ends: [String: Timestamp] = [:]
    try forEachEntry { entry in
      ends[String(decoding: entry.key, as: UTF8.self)] = entry.info.expires
      return .next
    }
    return ends
  }

  /// All keys with their values, by iteration.
  func contents() throws -> [String: [UInt8]] {
    var contents: [String: [UInt8]] = [:]
    try forEachEntry { entry in
      let key = String(decoding: entry.key, as: UTF8.self)
      #expect(contents[key] == nil, "visited twice")
      contents[key] = entry.value
      return .next
    }
    return contents
  }
}

/// A boot identifier other than the machine's.
let otherBoot = [UInt8](repeating: 0xB0, count: 16)

/// The error of the store that a body throws; anything else is a failed test.
func storeError(
  sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
) -> StoreError? {
  do {
    try body()
    return nil
  } catch let error as StoreError {
    return error
  } catch {
    Issue.record("not an error of the store: \(error)", sourceLocation: sourceLocation)
    return nil
  }
}

extension StoreError {
  /// The place of the damage, without the directory, which differs from test to test.
  var corruption: Corruption? {
    if case .corrupt(let corruption) = self { return corruption.withoutDirectory }
    return nil
  }
}

/// Runs a body on separate threads and waits for all of them, but not forever.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
  let failure = Mutex<(any Error)?>(nil)
  let group = DispatchGroup()
  for index in 0..<count {
    group.enter()
    Thread.detachNewThread {
      defer { group.leave() }
      do { try body(index) } catch { failure.withLock { $0 = $0 ?? error } }
    }
  }
  guard group.wait(timeout: .now() + .seconds(100)) == .success else {
    throw SupportError(call: "threads that did not end", number: 0)
  }
  if let error = failure.withLock({ $0 }) { throw error }
}

/// A thread that a test waits for later.
final class Background: Sendable {
  private let group = DispatchGroup()
  private let failure = Mutex<(any Error)?>(nil)
  /// The file that shows what the thread is doing.
  private let status = Mutex<String?>(nil)

  init(_ body: @escaping @Sendable () throws -> Void) {
    group.enter()
    Thread.detachNewThread { [group, self] in
      defer { group.leave() }
      let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
      status.withLock { $0 = "/proc/\(link ?? "")/stat" }
      do { try body() } catch { failure.withLock { $0 = error } }
    }
  }

  /// Waits, at most ten seconds, until the thread is waiting for something or has ended.
  func waitUntilBlocked() {
    let limit = ContinuousClock.now + .seconds(10)
    while ContinuousClock.now < limit {
      if let file = status.withLock({ $0 }) {
        guard let text = try? String(contentsOfFile: file, encoding: .utf8) else { return }
        if text.split(separator: ")").last?.hasPrefix(" S") == true { return }
      }
      sched_yield()
    }
  }

  /// Whether the thread ended within a time that no working code needs.
  func finishes(within seconds: Int = 100) -> Bool {
    group.wait(timeout: .now() + .seconds(seconds)) == .success
  }

  /// The error that the thread ended with.
  var error: (any Error)? { failure.withLock { $0 } }
}

/// Waits until another thread makes a condition true, but not forever.
func waitUntil(_ holds: () throws -> Bool) throws {
  let limit = ContinuousClock.now + .seconds(100)
  while try !holds() {
    if ContinuousClock.now > limit { throw SupportError(call: "waited in vain", number: 0) }
    Thread.sleep(forTimeInterval: 0)
  }
}
