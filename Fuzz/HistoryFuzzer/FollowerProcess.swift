import CairnStore
import Foundation
import FuzzSupport

/// A process that follows a store, and records what it sees until it is killed or nothing more is
/// written.
struct FollowerProcess {
  private let path: String
  private let history: FollowedHistory
  private let writer: FollowedWriterLog
  private let log: FollowerLog
  private let freshness: Freshness
  private let mapsFiles: Bool
  private var random: FuzzRandom
  private var isInView = false

  /// - Parameter index: decides how the follower reads.
  init(
    store path: String, directory: String, _ history: FollowedHistory, index: Int, seed: UInt64
  ) throws {
    self.path = path
    self.history = history
    writer = try FollowedWriterLog(path: directory + "/log")
    log = try FollowerLog(path: directory + "/follower \(index)")
    freshness = [.everyRead, .everyRead, .manual, .interval(.milliseconds(3))][index & 3]
    var random = FuzzRandom(seed: seed)
    mapsFiles = index != 1 && !random.once(in: 4)
    self.random = random
  }

  mutating func run() throws {
    while !writer.isOver {
      let store = try open()
      let actionCount = 1 << random.below(13)
      var count = 0
      while count < actionCount, !writer.isOver, log.hasRoom {
        count += 1
        try orOutdated { try $0.act(on: store) }
        if random.once(in: 32) { usleep(UInt32(random.below(2000))) }
      }
      if !log.hasRoom {
        while !writer.isOver { usleep(1000) }
      }
      try store.close()
    }
    try finish()
  }

  /// The last reads must see the end of the history.
  private mutating func finish() throws {
    let store = try open()
    try orOutdated { try $0.catchUp(store) }
    try orOutdated { follower in
      for key in 0..<FollowedHistory.keyCount { try follower.read(key, in: store) }
    }
    note(.endOfView)
    note(.end)
    // Files that the writer has removed must stop taking space.
    let limit = HistoryLog.now() + 10_000_000_000
    while try holdsRemovedFiles() {
      if HistoryLog.now() > limit { throw FuzzFailure("files that were removed are still held") }
      usleep(1000)
    }
    try store.close()
  }

  private func holdsRemovedFiles() throws -> Bool {
    let maps = try String(contentsOfFile: "/proc/self/maps", encoding: .utf8)
    return maps.split(separator: "\n").contains {
      $0.contains(path) && $0.hasSuffix("(deleted)")
    }
  }

  private func note(_ kind: FollowedEvent.Kind, done: Int = 0) {
    log.note(FollowedEvent(kind, done: done, begun: writer.begun))
  }

  private mutating func open() throws -> Store {
    var configuration = StoreConfiguration()
    configuration.log = .silent
    configuration.mapsFiles = mapsFiles
    while true {
      let done = writer.done
      let store: Store
      do throws(StoreError) {
        store = try Store(following: path, freshness: freshness, configuration: configuration)
      } catch {
        // Another store is replacing this one.
        guard case .noStore = error else { throw error }
        usleep(200)
        continue
      }
      note(.opened, done: done)
      isInView = false
      if freshness == .manual { beginView(done) }
      return store
    }
  }

  private mutating func beginView(_ done: Int) {
    note(.view, done: done)
    isInView = true
  }

  /// Continues with the current contents if the data seen so far is gone.
  private mutating func orOutdated(_ body: (inout FollowerProcess) throws -> Void) throws {
    do { try body(&self) } catch StoreError.outdated {
      note(.outdated)
      isInView = false
      if freshness == .manual { beginView(0) }
    }
  }

  private mutating func act(on store: Store) throws {
    switch random.below(60) {
    case 0..<4: try catchUp(store)
    case 4..<6: try readSnapshot(of: store)
    default: try read(random.below(FollowedHistory.keyCount), in: store)
    }
  }

  private mutating func catchUp(_ store: Store) throws {
    let done = writer.done
    if isInView {
      note(.endOfView)
      isInView = false
    }
    try store.catchUp()
    if freshness == .manual { beginView(done) } else { note(.caughtUp, done: done) }
  }

  private func read(_ key: Int, in store: Store) throws {
    // With other kinds of freshness, a read need not find the latest writes.
    let done = freshness == .everyRead ? writer.done : 0
    let entry = try store.entry(forKey: FollowedHistory.key(key))
    try note(entry, of: key, done: done)
  }

  private func note(_ entry: ByteEntry?, of key: Int, done: Int) throws {
    let begun = writer.begun
    log.note(
      FollowedEvent(
        .read, key: key, done: done, begun: begun,
        number: try entry.map { try history.number(of: $0.value, forKey: key) } ?? 0,
        version: entry?.info.version ?? 0))
  }

  /// Reads all keys at one moment.
  private mutating func readSnapshot(of store: Store) throws {
    let done = freshness == .everyRead ? writer.done : 0
    let snapshot = try store.snapshot()
    defer { snapshot.close() }
    var entries: [[UInt8]: ByteEntry] = [:]
    try snapshot.forEachEntry { entry in
      entries[entry.key] = entry
      return .next
    }
    guard try snapshot.count() == entries.count else {
      throw FuzzFailure("a snapshot counts \(try snapshot.count()) instead of \(entries.count)")
    }
    // With `.manual`, a view is already open.
    if freshness != .manual { note(.view, done: done) }
    for key in 0..<FollowedHistory.keyCount {
      try note(entries[Array(FollowedHistory.key(key).utf8)], of: key, done: done)
    }
    if freshness != .manual { note(.endOfView) }
  }
}
