import Cairn
import Testing

@testable import NearCache

@Suite("Without a server")
struct UnitTests {
  @Test("Commands are encoded as the protocol requires")
  func encoding() {
    #expect(Command("GET", "a\r\nb").encoded == Array("*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n".utf8))
    #expect(Command("GET", "key").name == "GET key")
  }

  @Test("Waits double up to a maximum, and start over after a success")
  func backoff() {
    var configuration = EngineConfiguration()
    configuration.firstRetryDelay = .milliseconds(10)
    configuration.longestRetryDelay = .milliseconds(50)
    var backoff = Backoff(configuration)
    var generator = SystemRandomNumberGenerator()
    func draws() -> [Int64] {
      (0..<200).map { _ in
        var copy = backoff
        return copy.noteFailure(using: &generator)
      }.sorted()
    }
    for limit: Int64 in [10, 20, 40, 50, 50] {
      // Waits are random, from zero up to the limit, so that many machines do not reconnect at
      // once.
      let draws = draws()
      #expect((0..<limit * 250_000).contains(draws[0]), "of \(limit) ms")
      #expect((limit * 750_000...limit * 1_000_000).contains(draws[199]), "of \(limit) ms")
      _ = backoff.noteFailure(using: &generator)
    }
    backoff.noteSuccess()
    #expect(draws()[199] <= 10_000_000)
  }

  @Test("Durations may be as long as the type allows")
  func longDurations() {
    let long = Duration.seconds(Int64.max)
    #expect(long.nanoseconds == .max)
    #expect((.zero - long - long).nanoseconds == .min)
    #expect((long + long).nanoseconds == .max)
    #expect(Duration.milliseconds(-1500).nanoseconds == -1_500_000_000)
    var configuration = EngineConfiguration()
    configuration.firstRetryDelay = long
    configuration.longestRetryDelay = long
    var backoff = Backoff(configuration)
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<100 { #expect(backoff.noteFailure(using: &generator) >= 0) }
    let freshness = Freshness(limit: long, policy: .expireAtLimit)
    freshness.begin(7, at: bootTime())
    freshness.confirm(bootTime(), isAwaited: true)
    #expect(freshness.isFresh(7))
  }

  @Test("The limit of a wait stays in range after many failures")
  func longestBackoff() {
    var configuration = EngineConfiguration()
    configuration.firstRetryDelay = .seconds(1)
    configuration.longestRetryDelay = .seconds(Int64.max)
    var backoff = Backoff(configuration)
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<100 { #expect(backoff.noteFailure(using: &generator) >= 0) }
  }

  @Test("A near copy is fresh in its session, up to the limit after the last confirmation")
  func session() {
    let freshness = Freshness(limit: .seconds(2), policy: .expireAtOnce)
    let second: Int64 = 1_000_000_000
    #expect(!freshness.isFresh(Freshness.noSession) { 0 })
    #expect(!freshness.isFresh(7) { 0 })
    freshness.begin(7, at: 10 * second)
    #expect(freshness.current == 7)
    #expect(freshness.isFresh(7) { 12 * second })
    #expect(!freshness.isFresh(7) { 12 * second + 1 })
    #expect(!freshness.isFresh(8) { 11 * second })
    freshness.confirm(11 * second)
    #expect(freshness.isFresh(7) { 13 * second })
    freshness.end()
    #expect(freshness.current == Freshness.noSession)
    #expect(!freshness.isFresh(7) { 11 * second })
    // A confirmation after the end has no effect.
    freshness.confirm(20 * second)
    #expect(!freshness.isFresh(7) { 11 * second })
    freshness.begin(8, at: 20 * second)
    #expect(!freshness.isFresh(7) { 20 * second })
    #expect(freshness.isFresh(8) { 20 * second })
  }

  @Test(
    "With expireAtLimit, copies outlive a lost connection up to the limit, unless ended as unsafe"
  )
  func sessionThatOutlives() {
    let freshness = Freshness(limit: .seconds(2), policy: .expireAtLimit)
    let second: Int64 = 1_000_000_000
    freshness.begin(7, at: 10 * second)
    freshness.end()
    #expect(freshness.isFresh(7) { 12 * second })
    #expect(!freshness.isFresh(7) { 12 * second + 1 })
    // The next session does not extend the old one.
    freshness.begin(8, at: 11 * second)
    freshness.confirm(30 * second)
    #expect(!freshness.isFresh(7) { 13 * second })
    freshness.end(isUnsafe: true)
    #expect(!freshness.isFresh(8) { 30 * second })
  }

  @Test("After a catchUp, copies of earlier sessions are returned neither as fresh nor as stale")
  func floor() {
    let freshness = Freshness(limit: .seconds(2), policy: .expireAtLimit)
    let (now, second) = (bootTime(), Int64(1_000_000_000))
    let long = Timestamp.now.advanced(by: .seconds(-60))
    freshness.begin(7, at: now - 4 * second)
    freshness.end()
    freshness.begin(8, at: now - 3 * second)
    #expect(freshness.isFresh(7) { now - 3 * second })
    #expect(freshness.mayBeStale(7, asked: long))
    freshness.confirm(now - 2 * second, isAwaited: true)
    #expect(!freshness.isFresh(7) { now - 3 * second })
    #expect(!freshness.mayBeStale(7, asked: long))
    #expect(freshness.mayBeStale(8, asked: long))
    freshness.end()
    #expect(freshness.mayBeStale(8, asked: long))
    #expect(!freshness.mayBeStale(Freshness.noSession, asked: long))
    #expect(freshness.mayBeStale(Freshness.noSession, asked: Timestamp.now))
  }

  @Test("A near copy of an ended session was right when the session was last confirmed")
  func lastKnownRight() {
    let freshness = Freshness(limit: .seconds(2), policy: .expireAtOnce)
    let hour = Timestamp(millisecondsSinceEpoch: 3_600_000)
    #expect(freshness.lastKnownRight(7, asked: hour) == hour)
    freshness.begin(7, at: bootTime() - 5_000_000_000)
    freshness.end()
    let age =
      Timestamp.now.millisecondsSinceEpoch
      - freshness.lastKnownRight(7, asked: hour).millisecondsSinceEpoch
    #expect((4_990...5_100).contains(age))
    let late = Timestamp.now
    #expect(freshness.lastKnownRight(7, asked: late) == late)
  }

  @Test("A configuration that cannot keep its promise is refused")
  func configuration() async {
    var configuration = NearCacheConfiguration(
      prefix: "a:", engine: EngineConfiguration(), near: .init())
    configuration.stalenessLimit = .milliseconds(999)
    await #expect(throws: NearCacheError.self) {
      try await NearCache<String, String>.open(at: "unused", configuration, coder: .string)
    }
    configuration.stalenessLimit = .seconds(1)
    #expect(throws: Never.self) { try configuration.validate() }
  }

  @Test("Errors name the host, the port and the call")
  func errorText() {
    let error = EngineError(
      .timedOut(.milliseconds(500)), EngineEndpoint(host: "cache-1", port: 7000), call: "GET a")
    #expect("\(error)" == "GET a at cache-1:7000: no answer within 0.5 seconds")
  }
}
