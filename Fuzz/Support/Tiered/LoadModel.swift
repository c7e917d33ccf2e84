import Cairn
import CairnStore

/// A model of loads with policies, simple enough to be right. Times are in milliseconds.
struct LoadModel {
  struct Entry: Equatable {
    var value: String
    var version: UInt64
    var written: Int64
    /// When it was written, or found unmodified by this process.
    var validated: Int64
    var expires: Int64
  }

  /// What the process knows about the loads of a key.
  struct Past {
    var failureCount = 0
    var retryTime = Int64.min
    var absenceEnd = Int64.min
  }

  /// A caller should get this.
  enum Answer: Equatable {
    case value(String, age: Int64, isStale: Bool)
    case absent
    case failure
    case timedOut
  }

  /// The outcome of a call.
  enum Outcome: Equatable {
    /// It is answered at once; `begins`: and a load should then be in progress.
    case answered(Answer, begins: Bool)
    case waits
  }

  /// An expired value stays until it is removed. Only answers that may return it show this.
  var entries: [Int: Entry] = [:]
  var past: [Int: Past] = [:]
  var now: Int64

  /// What a read without a policy finds.
  func fresh(_ key: Int) -> Entry? { entries[key].flatMap { $0.expires > now ? $0 : nil } }

  func outcome(_ key: Int, _ policy: LoadPolicy) -> Outcome {
    let past = past[key] ?? Past()
    guard let entry = entries[key] else {
      return past.absenceEnd > now ? .answered(.absent, begins: false) : .waits
    }
    let mayLoad = past.retryTime <= now
    let given = answer(entry)
    if entry.expires > now {
      let part = policy.refreshAhead ?? 1
      let isDue =
        part < 1
        && Double(now - entry.validated) >= part * Double(entry.expires - entry.validated)
      return .answered(given, begins: isDue && mayLoad)
    }
    let overdue = now - entry.expires
    if overdue < policy.staleWhileRevalidating.milliseconds {
      return .answered(given, begins: mayLoad)
    }
    if overdue < policy.staleOnError.milliseconds, !mayLoad {
      return .answered(given, begins: false)
    }
    return .waits
  }

  func answer(_ entry: Entry) -> Answer {
    .value(entry.value, age: now - entry.validated, isStale: entry.expires <= now)
  }

  /// What a caller gets that has waited for a load that failed.
  func answer(afterFailureOf key: Int, _ policy: LoadPolicy, timedOut: Bool) -> Answer {
    let longest = max(policy.staleWhileRevalidating, policy.staleOnError).milliseconds
    if let entry = entries[key], now - entry.expires < longest { return answer(entry) }
    return timedOut ? .timedOut : .failure
  }

  mutating func noteFailure(_ key: Int, _ policy: LoadPolicy) {
    var past = past[key] ?? Past()
    past.failureCount += 1
    let delay = min(
      policy.firstRetryDelay.milliseconds << Int64(min(20, past.failureCount - 1)),
      policy.longestRetryDelay.milliseconds)
    past.retryTime = now + delay
    self.past[key] = past
  }

  /// What a write or a removal of a key makes the cache forget.
  mutating func forget(_ key: Int) { past[key] = nil }

  mutating func removeExpired(before end: Int64) {
    entries = entries.filter { $0.value.expires > end }
  }
}
