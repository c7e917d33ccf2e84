import Cairn
import Synchronization

/// Tracks how long near copies are known to be right.
///
/// A *session* is a period in which invalidations arrive without a gap. Each near copy belongs to
/// one session: it was requested from the engine during that session. Its copies are fresh until
/// the staleness limit has passed since the last confirmed moment. A moment is confirmed when
/// the engine has shown that all earlier invalidations have arrived.
@usableFromInline
final class Freshness: Sendable {
  private struct Session {
    /// Both times are from `bootTime`.
    var confirmed: Int64
    var freshUntil: Int64
  }

  private struct Sessions {
    var known: [UInt64: Session] = [:]
    var order: [UInt64] = []
    /// The moment of the last `catchUp`. Copies last known to be right before it must not be
    /// returned.
    var floor: Int64 = .min
  }

  /// The number for near copies without a session.
  static let noSession: UInt64 = 0
  private static let knownCount = 64

  /// The staleness limit, in nanoseconds.
  let limit: Int64
  private let policy: LossPolicy
  // Every get reads both; they are written a few times a second.
  private let session = Atomic<UInt64>(noSession)
  private let freshUntil = Atomic<Int64>(.min)
  private let sessions = Mutex(Sessions())

  init(limit: Duration, policy: LossPolicy) {
    self.limit = limit.nanoseconds
    self.policy = policy
  }

  /// The session of near copies that are requested from now on.
  var current: UInt64 { session.load(ordering: .acquiring) }

  /// Whether a near copy is fresh. Call after reading the copy.
  ///
  /// Loads the time before the session. If the session is still the old one, so is the time. In the
  /// opposite order, a copy of the old session could be checked against the time of the new one.
  @usableFromInline
  func isFresh(_ session: UInt64) -> Bool { isFresh(session, at: bootTime) }

  @inline(__always)
  func isFresh(_ session: UInt64, at now: () -> Int64) -> Bool {
    let until = freshUntil.load(ordering: .acquiring)
    if session == self.session.load(ordering: .acquiring), session != Self.noSession {
      return now() <= until
    }
    return isFreshInPast(session, now())
  }

  private func isFreshInPast(_ session: UInt64, _ now: Int64) -> Bool {
    sessions.withLock { sessions in
      // If the session has begun since the caller's check, its next call checks again.
      sessions.known[session].map { now <= $0.freshUntil } ?? false
    }
  }

  /// The time at which a near copy was last known to be right.
  ///
  /// - Parameter asked: the time of the request to the engine.
  func lastKnownRight(_ session: UInt64, asked: Timestamp) -> Timestamp {
    guard let confirmed = sessions.withLock({ $0.known[session]?.confirmed }) else { return asked }
    let ago = Duration.nanoseconds(bootTime() - confirmed)
    return max(asked, Timestamp.now.advanced(by: .zero - ago))
  }

  /// Whether a near copy may be returned as stale: it was known to be right at the last `catchUp`
  /// or later.
  func mayBeStale(_ session: UInt64, asked: Timestamp) -> Bool {
    let (floor, confirmed) = sessions.withLock { ($0.floor, $0.known[session]?.confirmed) }
    if floor == .min { return true }
    if let confirmed, confirmed >= floor { return true }
    // One millisecond for rounding, and one because the two clocks are not read at the same time.
    let ago = Duration.nanoseconds(bootTime() - floor) - .milliseconds(2)
    return asked > Timestamp.now.advanced(by: .zero - ago)
  }

  /// Begins a session. From `moment` on, all invalidations arrive.
  func begin(_ id: UInt64, at moment: Int64) {
    sessions.withLock { sessions in
      sessions.known[id] = Session(confirmed: moment, freshUntil: moment.adding(limit))
      sessions.order.append(id)
      if sessions.order.count > Self.knownCount {
        sessions.known[sessions.order.removeFirst()] = nil
      }
      session.store(id, ordering: .releasing)
      freshUntil.store(moment.adding(limit), ordering: .releasing)
    }
  }

  /// Records that all invalidations of writes acknowledged before `moment` have arrived and were
  /// applied.
  ///
  /// - Parameter isAwaited: whether a caller waits for this. Then near copies of earlier sessions
  ///   must not be returned, because they may be older.
  func confirm(_ moment: Int64, isAwaited: Bool = false) {
    sessions.withLock { sessions in
      let id = session.load(ordering: .relaxed)
      if id == Self.noSession { return }
      if isAwaited {
        sessions.floor = moment
        for past in sessions.order where past != id { sessions.known[past]?.freshUntil = .min }
      }
      sessions.known[id] = Session(confirmed: moment, freshUntil: moment.adding(limit))
      freshUntil.store(moment.adding(limit), ordering: .releasing)
    }
  }

  /// Ends the session. From now on, invalidations may be missed.
  ///
  /// - Parameter isUnsafe: whether the session's near copies must not be returned, whatever the
  ///   policy.
  func end(isUnsafe: Bool = false) {
    sessions.withLock { sessions in
      let id = session.load(ordering: .relaxed)
      if id == Self.noSession { return }
      if isUnsafe || policy == .expireAtOnce { sessions.known[id]?.freshUntil = .min }
      freshUntil.store(.min, ordering: .releasing)
      session.store(Self.noSession, ordering: .releasing)
    }
  }
}

/// When near copies expire after invalidations stop arriving.
public enum LossPolicy: Sendable, Hashable {
  /// At once.
  case expireAtOnce
  /// When the staleness limit has passed since the last confirmation.
  case expireAtLimit
}
