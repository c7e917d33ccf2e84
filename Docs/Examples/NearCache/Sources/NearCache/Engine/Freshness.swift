import Cairn
import Synchronization

/// Until when near copies are known to be right.
///
/// While invalidations are received without a gap, that is a *session*. A near copy belongs to the session in which the
/// engine was asked for it. It is fresh as long as that session is: up to the staleness limit after the last moment of
/// which the engine has confirmed that all invalidations until then have come.
@usableFromInline
final class Freshness: Sendable {
  private struct Session {
    /// By `bootTime`.
    var confirmed: Int64
    var freshUntil: Int64
  }

  private struct Sessions {
    var known: [UInt64: Session] = [:]
    var order: [UInt64] = []
    /// The moment of the last `catchUp`: what was known to be right before it alone must not be given any more.
    var floor: Int64 = .min
  }

  /// Of near copies that belong to none.
  static let noSession: UInt64 = 0
  private static let knownCount = 64

  private let limit: Int64
  private let policy: LossPolicy
  // Both are read by every get, and written a few times a second.
  private let session = Atomic<UInt64>(noSession)
  private let freshUntil = Atomic<Int64>(.min)
  private let sessions = Mutex(Sessions())

  init(limit: Duration, policy: LossPolicy) {
    self.limit = limit.nanoseconds
    self.policy = policy
  }

  /// The session that a near copy belongs to for which the engine is asked from now on.
  var current: UInt64 { session.load(ordering: .acquiring) }

  /// Whether a near copy may be given, to be asked after it was read.
  ///
  /// In this order: where the session is the old one, so is the time before it. Otherwise a copy of the old session might
  /// be measured by the time of the new one.
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
      // One that has begun since the caller looked is judged anew by the caller's next call.
      sessions.known[session].map { now <= $0.freshUntil } ?? false
    }
  }

  /// When a near copy was known to be right for the last time.
  ///
  /// - Parameter asked: when the engine was asked for it.
  func lastKnownRight(_ session: UInt64, asked: Timestamp) -> Timestamp {
    guard let confirmed = sessions.withLock({ $0.known[session]?.confirmed }) else { return asked }
    let ago = Duration.nanoseconds(bootTime() - confirmed)
    return max(asked, SystemClock().now().advanced(by: .zero - ago))
  }

  /// Whether a near copy may be given as stale: it was known to be right at the last `catchUp`, or later.
  func mayBeStale(_ session: UInt64, asked: Timestamp) -> Bool {
    let (floor, confirmed) = sessions.withLock { ($0.floor, $0.known[session]?.confirmed) }
    if floor == .min { return true }
    if let confirmed, confirmed >= floor { return true }
    // Rounded up, and a millisecond for the two clocks, which are not read at once.
    let ago = Duration.nanoseconds(bootTime() - floor) - .milliseconds(2)
    return asked > SystemClock().now().advanced(by: .zero - ago)
  }

  /// Begins a session: from `moment` on, all invalidations come.
  func begin(_ id: UInt64, at moment: Int64) {
    sessions.withLock { sessions in
      sessions.known[id] = Session(confirmed: moment, freshUntil: moment + limit)
      sessions.order.append(id)
      if sessions.order.count > Self.knownCount {
        sessions.known[sessions.order.removeFirst()] = nil
      }
      session.store(id, ordering: .releasing)
      freshUntil.store(moment + limit, ordering: .releasing)
    }
  }

  /// All invalidations of what was acknowledged until `moment` have come, and were obeyed.
  ///
  /// - Parameter isAwaited: whether somebody is told so. Near copies of earlier sessions, of which that is not known, are
  ///   not given any more then.
  func confirm(_ moment: Int64, isAwaited: Bool = false) {
    sessions.withLock { sessions in
      let id = session.load(ordering: .relaxed)
      if id == Self.noSession { return }
      if isAwaited {
        sessions.floor = moment
        for past in sessions.order where past != id { sessions.known[past]?.freshUntil = .min }
      }
      sessions.known[id] = Session(confirmed: moment, freshUntil: moment + limit)
      freshUntil.store(moment + limit, ordering: .releasing)
    }
  }

  /// Ends the session: from now on invalidations may be missed.
  ///
  /// - Parameter isUnsafe: whether its near copies must not be given whatever the policy says.
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

/// What becomes of all near copies when invalidations are not received any more.
public enum LossPolicy: Sendable, Hashable {
  /// They expire at once.
  case expireAtOnce
  /// They expire when the staleness limit has passed since the last confirmation.
  case expireAtLimit
}
