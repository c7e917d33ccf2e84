import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

/// Followers read before each of the writer's calls, and the writer acts at each of the follower's
/// calls.
@Suite("Following, call by call")
final class FollowingStepTests {
  typealias Contents = [String: [UInt8]]

  /// A step of the writer: one change, or none that a read can see.
  struct Step: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let run: @Sendable (Store) throws -> Void

    init(_ name: String, _ run: @escaping @Sendable (Store) throws -> Void) {
      testDescription = name
      self.run = run
    }

    static let all = [
      Step("a value") { try $0.setValue("new", forKey: "key 3") },
      Step("a removal") { try $0.removeValue(forKey: "key 5") },
      Step("a value that needs the next segment") {
        try $0.setValue([UInt8](repeating: 7, count: 50_000), forKey: "key 4")
      },
      Step("a value that needs a segment of its own") {
        try $0.setValue([UInt8](repeating: 8, count: 90_000), forKey: "key 4")
      },
      Step("a batch") { try writeBatch(6, to: $0) },
      Step("a batch beside the log") { try writeBatch(40, to: $0) },
      Step("a longer lifetime") { try $0.setLifetime(.seconds(9000), forKey: "mortal") },
      Step("a compaction") { try $0.compact() },
      Step("a checkpoint") { try $0.checkpoint() },
      Step("a removal of all") { try $0.removeAll() },
      Step("a pass of maintenance") { try $0.maintain() },
      Step("a batch that leaves segments dead, and a pass of maintenance") { store in
        try store.write { batch in
          for number in 40..<60 where number != 41 {
            try batch.setValue("again", forKey: "key \(number)")
          }
        }
        try store.maintain()
      },
      Step("a sync") { try $0.sync() },
      Step("a close") { try $0.close() },
    ]

    private static func writeBatch(_ count: Int, to store: Store) throws {
      try store.write { batch in
        for number in 0..<count { try batch.setValue("of a batch", forKey: "key \(number)") }
        try batch.removeValue(forKey: "key 50")
      }
    }
  }

  let directory: TemporaryDirectory
  let queue = ManualBackgroundQueue()

  init() throws { directory = try TemporaryDirectory() }

  private static let configuration = StoreConfiguration.small {
    $0.asideOperationCount = 30
    $0.deadByteFloor = 0
    $0.spaceBound = 1.1
  }

  /// Left by a session that overwrote values and closed.
  private static let closed = Result {
    let directory = try TemporaryDirectory()
    let store = try Store.announcing(
      directory.store, configuration, background: ManualBackgroundQueue())
    for number in 0..<120 {
      try store.setValue(
        [UInt8](repeating: UInt8(number), count: 1500), forKey: "key \(number % 60)")
    }
    try store.close()
    return try Image(of: directory.store)
  }

  /// A store of several segments with dead records. The store was closed once and then written to
  /// again.
  private func makeStore(_ fileSystem: any FileSystem = SystemFileSystem()) throws -> Store {
    try Self.closed.get().write(to: directory.store)
    let store = try Store.announcing(
      directory.store, Self.configuration, fileSystem: fileSystem, background: queue)
    for number in 0..<40 {
      try store.setValue([UInt8](repeating: UInt8(number), count: 1500), forKey: "key \(number)")
    }
    try store.setValue("dies", forKey: "mortal", lifetime: .seconds(3000))
    try store.removeValue(forKey: "key 41")
    return store
  }

  @Test(
    "Before each call that the writer makes, followers find the state before or after it",
    arguments: Step.all)
  func writersCalls(step: Step) throws {
    let fileSystem = FaultyFileSystem()
    let writer = try makeStore(fileSystem)
    let follower = try Store.following(directory.store)
    let before = try follower.contents()
    let path = directory.store
    let found = Mutex<[Contents]>([])
    let failure = Mutex<(any Error)?>(nil)
    let count = Mutex(0)
    fileSystem.setHook { _ in
      do {
        let number = count.withLock { count in
          count += 1
          return count
        }
        let contents = try follower.contents()
        found.withLock { $0.append(contents) }
        // A new follower opens what exists. It does not wait for the writer, which is held up here.
        if number % 3 == 0 {
          let late = try Store.following(path)
          let contents = try late.contents()
          found.withLock { $0.append(contents) }
          try late.close()
        }
      } catch { failure.withLock { $0 = $0 ?? error } }
      return nil
    }
    try step.run(writer)
    fileSystem.setHook(nil)
    if let error = failure.withLock({ $0 }) { throw error }
    let after = try follower.contents()
    #expect(try Store.following(path).contents() == after)
    var hasChanged = false
    for contents in found.withLock({ $0 }) {
      if contents == after, after != before { hasChanged = true }
      #expect(contents == after || (contents == before && !hasChanged))
    }
    #expect(try follower.auditUsage(mayCountMore: true) == [])
    try follower.close()
    try? writer.close()
    #expect(try Store(path, readOnly: true).contents() == after)
  }

  @Test(
    "Before each call of the first write after an open, followers find the state before or after")
  func firstWrite() throws {
    // Nothing was published before.
    let first = try Store(directory.store, Self.configuration, background: queue)
    for number in 0..<20 { try first.setValue("old", forKey: "key \(number)") }
    try first.close()
    let fileSystem = FaultyFileSystem()
    let writer = try Store.announcing(
      directory.store, Self.configuration, fileSystem: fileSystem, background: queue)
    let path = directory.store
    let counts = Mutex<[Int]>([])
    fileSystem.setHook { _ in
      let count = try? Store.following(path).count()
      counts.withLock { $0.append(count ?? -1) }
      return nil
    }
    try writer.setValue("new", forKey: "new")
    fileSystem.setHook(nil)
    let found = counts.withLock { $0 }
    #expect(found.count > 3)
    #expect(found.allSatisfy { $0 == 20 || $0 == 21 }, "\(found)")
    try writer.close()
  }

  @Test(
    "Whatever happens before any call of a follower that opens or catches up, it finds the newest state",
    arguments: Step.all)
  func followersCalls(step: Step) throws {
    for isNew in [true, false] {
      var index = 0
      while true {
        try? FileManager.default.removeItem(atPath: directory.store)
        let writer = try makeStore()
        let fileSystem = FaultyFileSystem()
        let early = isNew ? nil : try Store.following(directory.store, fileSystem: fileSystem)
        if !isNew {
          // Something for the follower to catch up with.
          try writer.compact()
          try writer.setValue("later", forKey: "key 30")
        }
        let before = try Store.following(directory.store).contents()
        let count = Mutex(0)
        let failure = Mutex<(any Error)?>(nil)
        let wanted = index
        fileSystem.setHook { _ in
          let number = count.withLock { count in
            count += 1
            return count - 1
          }
          if number == wanted {
            do { try step.run(writer) } catch { failure.withLock { $0 = error } }
          }
          return nil
        }
        let freshness = index % 2 == 0 ? Freshness.manual : .everyRead
        let follower =
          try early ?? Store.following(directory.store, freshness, fileSystem: fileSystem)
        let contents = try follower.contents()
        let hasRun = count.withLock { $0 } > wanted
        fileSystem.setHook(nil)
        if let error = failure.withLock({ $0 }) { throw error }
        let after = try Store.following(directory.store).contents()
        #expect(contents == before || contents == after, "call \(wanted)")
        try follower.catchUp()
        #expect(try follower.contents() == after, "call \(wanted)")
        try follower.close()
        try? writer.close()
        if !hasRun { break }
        index += isNew ? 3 : 5
      }
      #expect(index > 0)
    }
  }
}
