import CairnRepair
import CairnStore
import FuzzSupport
import Testing

/// Many short sessions, such as those of a command, must not forget when keys were used.
@Suite("How much of the access order short sessions keep")
struct ClosingCheckpointTests {
  private struct Scene {
    let directory: TemporaryDirectory
    let clock = ManualClock()
    var keys: [String] { (0..<100).map { "key\($0)" } }

    init(idleLimit: Duration? = nil) throws {
      directory = try TemporaryDirectory()
      try session { store in
        for key in keys { try store.setValue("1", forKey: key, options: .idleLimit(idleLimit)) }
      }
    }

    func session(_ body: (Store) throws -> Void) throws {
      let store = try Store(
        directory.store, .small(clock: clock), background: ManualBackgroundQueue())
      try body(store)
      try store.close()
    }

    /// Reads one key in each of this many sessions. In the end, no other key must be left.
    func readOne(inSessions count: Int, each pause: Duration) throws {
      for _ in 0..<count {
        clock.advance(by: pause)
        try session { store in
          let value = try store.value(forKey: "key7")
          #expect(value != nil)
        }
      }
      try session { store in
        let left = try store.count()
        #expect(left == 1)
      }
    }

    func files() throws -> [String: [UInt8]] { try Image(of: directory.store).files }
  }

  @Test("An hour after the checkpoint's newest access, a session that only reads makes another one")
  func reads() throws {
    let scene = try Scene()
    scene.clock.advance(by: .seconds(3601))
    try scene.session { _ = try $0.value(forKey: "key0") }
    scene.clock.advance(by: .seconds(1000))
    try scene.session { store in
      #expect(try store.keysByRecency().last == Array("key0".utf8))
      #expect(try store.statistics().recovery.source == .checkpoint)
      try store.trim(.toCount(1))
      #expect(try store.contains("key0"))
    }
    #expect(try Store.verify(path: scene.directory.store).errors == [])
  }

  @Test("Within the hour, or if nothing was read, the files stay unchanged")
  func files() throws {
    let scene = try Scene()
    let files = try scene.files()
    scene.clock.advance(by: .seconds(3500))
    try scene.session { _ = try $0.value(forKey: "key0") }
    #expect(try scene.files() == files)
    scene.clock.advance(by: .seconds(1 << 30))
    try scene.session { _ = try $0.info(forKey: "key0") }
    #expect(try scene.files() == files)
  }

  @Test("Keys that many short sessions read do not become idle; keys that none reads do")
  func idleLimits() throws {
    let scene = try Scene(idleLimit: .seconds(600))
    try scene.readOne(inSessions: 20, each: .seconds(60))
  }

  /// Found by a trial: after a kill, sessions that were in use had ended.
  @Test("With maintenance, a kill does not make idle what was read; what none reads is idle")
  func killed() throws {
    let scene = try Scene(idleLimit: .seconds(600))
    let store = try Store(
      scene.directory.store, .small(clock: scene.clock), background: ManualBackgroundQueue())
    for _ in 0..<5 {
      scene.clock.advance(by: .seconds(300))
      #expect(try store.value(forKey: "key7") != nil)
      try store.maintain()
    }
    // As a kill would leave it.
    let killed = try TemporaryDirectory()
    try Image(of: scene.directory.store).write(to: killed.store)
    try store.close()
    scene.clock.advance(by: .seconds(300))
    let next = try Store(
      killed.store, .small(clock: scene.clock), background: ManualBackgroundQueue())
    #expect(try next.contains("key7"))
    #expect(try next.count() == 1)
    try next.close()
  }

  /// Found by a review: the newest access in the checkpoint was in the future, by as much as the
  /// clock had been ahead. Until that time, no short session recorded any access.
  @Test("A clock that was once ahead does not keep keys that nobody reads")
  func clockWasAhead() throws {
    let scene = try Scene()
    scene.clock.set(ManualClock.start.advanced(by: .seconds(1000 * 86_400)))
    try scene.session { store in
      for key in scene.keys {
        try store.setValue("2", forKey: key, options: .idleLimit(.seconds(86_400)))
      }
    }
    scene.clock.set(ManualClock.start)
    try scene.readOne(inSessions: 30, each: .seconds(7200))
  }

  @Test("A tiny idle limit does not make each session write a checkpoint")
  func shortestIdleLimit() throws {
    let scene = try Scene()
    try scene.session { store in
      for key in scene.keys { try store.setValue("2", forKey: key) }
      try store.setValue("2", forKey: "once", options: .idleLimit(.milliseconds(1)))
      try store.removeValue(forKey: "once")
    }
    let files = try scene.files()
    scene.clock.advance(by: .milliseconds(900))
    try scene.session { _ = try $0.value(forKey: "key0") }
    #expect(try scene.files() == files)
    scene.clock.advance(by: .milliseconds(200))
    try scene.session { _ = try $0.value(forKey: "key0") }
    #expect(try scene.files() != files)
  }

  @Test("A few writes after an hour also cause a checkpoint")
  func fewWrites() throws {
    let scene = try Scene()
    scene.clock.advance(by: .seconds(3601))
    try scene.session { try $0.setValue("2", forKey: "key3", durability: .process) }
    try scene.session { store in
      let recovery = try store.statistics().recovery
      #expect(recovery.replayedRecordCount == 0)
      #expect(try store.keysByRecency().last == Array("key3".utf8))
    }
  }
}
