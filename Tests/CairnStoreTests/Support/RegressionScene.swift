import CairnStore
import Foundation
import Synchronization
import Testing

/// Where a regression test plays: a directory of its own, a file system with a hook, and a
/// background queue that runs nothing unasked. All goes with the last reference.
final class RegressionScene: Sendable {
  static let segment = "seg-0000000000000001"

  private let root: String
  let fileSystem = HookFileSystem()
  let queue = HeldQueue()
  var path: String { root + "/store" }

  init() throws {
    root = NSTemporaryDirectory() + "cairn-regression-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
  }

  deinit {
    // A job holds its store, and the store this scene's queue.
    queue.discard()
    try? FileManager.default.removeItem(atPath: root)
  }

  /// Opens the store with small segments and no sync that is not asked for.
  func open(
    readOnly: Bool = false, _ change: (inout StoreConfiguration) -> Void = { _ in }
  ) throws(StoreError) -> Store {
    var configuration = StoreConfiguration()
    configuration.durability = .process
    configuration.segmentByteLimit = 64 << 10
    change(&configuration)
    return try Store(
      path: path, configuration: configuration,
      environment: Environment(fileSystem: fileSystem, background: queue), readOnly: readOnly)
  }

  /// A scene with a copy of the store's files as they are: what a kill at this moment leaves.
  func killed() throws -> RegressionScene {
    let copy = try RegressionScene()
    try FileManager.default.copyItem(atPath: path, toPath: copy.path)
    return copy
  }

  // MARK: Files

  func url(_ name: String) -> URL { URL(fileURLWithPath: path + "/" + name) }
  func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: path) }
  func bytes(of name: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: url(name))) }

  /// Changes bytes of a file in place, so that an open store sees it.
  func edit(_ name: String = segment, _ change: (inout [UInt8]) throws -> Void) throws {
    var bytes = try bytes(of: name)
    try change(&bytes)
    let file = try FileHandle(forUpdating: url(name))
    try file.write(contentsOf: Data(bytes))
    try file.truncate(atOffset: UInt64(bytes.count))
    try file.close()
  }

  /// Flips a bit of the byte where a text begins in the first segment.
  func damage(_ text: String, at distance: Int = 0) throws {
    try edit { bytes in
      let range = try #require(bytes.firstRange(of: Array(text.utf8)))
      bytes[range.lowerBound + distance] ^= 1
    }
  }

  func manifest() throws -> Manifest {
    try bytes(of: "MANIFEST").withSpan { (bytes) throws(StoreError) in
      try Manifest(decoding: bytes)
    }
  }

  func editManifest(_ change: (inout Manifest) -> Void) throws {
    var manifest = try manifest()
    change(&manifest)
    try Data(manifest.encoded()).write(to: url("MANIFEST"))
  }

  /// Makes it look as if the machine had restarted since.
  func reboot() throws { try editManifest { $0.bootIdentifier[0] ^= 1 } }

  func segmentHeader() throws -> SegmentHeader {
    try bytes(of: Self.segment).withSpan { (bytes) throws(StoreError) in
      try SegmentHeader(decoding: bytes, file: Self.segment)
    }
  }

  /// Expects that the store does not open, for damage, and that a check finds the damage too.
  func expectCorrupt(sourceLocation: SourceLocation = #_sourceLocation) throws {
    let report = try Store.verify(path: path)
    #expect(!report.errors.isEmpty, sourceLocation: sourceLocation)
    do {
      let store = try open()
      Issue.record("opened with \(try store.count()) keys", sourceLocation: sourceLocation)
    } catch StoreError.corrupt {
    } catch {
      Issue.record("\(error)", sourceLocation: sourceLocation)
    }
  }
}

/// A background queue that runs its jobs when it is told to, on the thread that tells it.
final class HeldQueue: BackgroundQueue {
  private let jobs = Mutex<[@Sendable () -> Void]>([])
  private let later = Mutex<[(delay: Duration, job: @Sendable () -> Void)]>([])

  func run(_ job: @escaping @Sendable () -> Void) { jobs.withLock { $0.append(job) } }
  func run(after delay: Duration, _ job: @escaping @Sendable () -> Void) {
    later.withLock { $0.append((delay, job)) }
  }

  /// The delays of the jobs that wait for a time.
  var delays: [Duration] { later.withLock { $0.map(\.delay) } }

  /// Runs the jobs that wait for nothing, and those that they add.
  func drain() {
    while let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { job() }
  }

  func discard() {
    let dropped = (jobs.withLock { take(&$0) }, later.withLock { take(&$0) })
    // Out of the locks, since the last reference to a store closes it.
    withExtendedLifetime(dropped) {}
  }

  private func take<Element>(_ elements: inout [Element]) -> [Element] {
    defer { elements = [] }
    return elements
  }
}

/// A thread of a test's own. Nothing about it sleeps: what is waited for is observed.
final class RegressionThread: Sendable {
  private let done = DispatchSemaphore(value: 0)
  private let status = Mutex<String?>(nil)

  init(_ body: @escaping @Sendable () -> Void) {
    Thread.detachNewThread { [self] in
      let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
      status.withLock { $0 = "/proc/\(link ?? "")/stat" }
      body()
      done.signal()
    }
  }

  /// Waits until the thread waits for something, or has ended; ten seconds at most.
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

  /// Whether the thread ends, within a time that no working code needs.
  func finishes() -> Bool { done.wait(timeout: .now() + .seconds(100)) == .success }
}

/// Holds the first thread up that comes, until it is told to go on.
final class RegressionStop: Sendable {
  private let arrived = DispatchSemaphore(value: 0)
  private let released = DispatchSemaphore(value: 0)
  private let isUsed = Mutex(false)

  /// Returns whether this was the first to come.
  func pass() -> Bool {
    let isFirst = isUsed.withLock { used in
      defer { used = true }
      return !used
    }
    if isFirst {
      arrived.signal()
      _ = released.wait(timeout: .now() + .seconds(100))
    }
    return isFirst
  }

  func waitForArrival() { #expect(arrived.wait(timeout: .now() + .seconds(100)) == .success) }
  func release() { released.signal() }
}

extension [UInt8] {
  /// A value of some size.
  static func filled(_ count: Int) -> [UInt8] { [UInt8](repeating: 7, count: count) }
}
