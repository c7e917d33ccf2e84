import Cairn
import CairnStore
import Foundation

/// A model of loads with policies, simple enough to be obviously correct. Times are in
/// milliseconds.
struct LoadModel {
  struct Entry: Equatable {
    var value: String
    var version: UInt64
    var written: Int64
    /// When the value was written, or confirmed as unmodified by this process.
    var validated: Int64
    var expires: Int64
  }

  /// What the process knows about the loads of a key.
  struct Past {
    var failureCount = 0
    var retryTime = Int64.min
    var absenceEnd = Int64.min
  }

  /// What a caller should get.
  enum Answer: Equatable {
    case value(String, age: Int64, isStale: Bool)
    case absent
    case failure
    case timedOut
  }

  /// The outcome of a call.
  enum Outcome: Equatable {
    /// The call returns at once. `begins`: a load should then be in progress.
    case answered(Answer, begins: Bool)
    case waits
  }

  /// An expired value stays until it is removed. Only calls that accept stale values show this.
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

  /// A lifetime that a load returned, less its jitter.
  func jittered(_ lifetime: Int64, _ policy: LoadPolicy, _ number: Double) -> Int64 {
    max(1, lifetime - Int64(Double(lifetime) * policy.lifetimeJitter * number))
  }

  func answer(_ entry: Entry) -> Answer {
    .value(entry.value, age: now - entry.validated, isStale: entry.expires <= now)
  }

  /// The stale value that a caller gets if its load has failed or exceeded a time limit, or `nil`
  /// if none is fresh enough.
  func stale(_ key: Int, _ policy: LoadPolicy) -> Answer? {
    let longest = max(policy.staleWhileRevalidating, policy.staleOnError).milliseconds
    guard let entry = entries[key], now - entry.expires < longest else { return nil }
    return answer(entry)
  }

  /// What a caller gets if it has waited for a load that failed.
  func answer(afterFailureOf key: Int, _ policy: LoadPolicy, timedOut: Bool) -> Answer {
    stale(key, policy) ?? (timedOut ? .timedOut : .failure)
  }

  /// Whether a call that waits for a load may stop waiting before it ends.
  func isSoft(_ key: Int, _ policy: LoadPolicy) -> Bool {
    guard policy.softTimeLimit != nil, let entry = entries[key] else { return false }
    return now - entry.expires < policy.staleOnError.milliseconds
  }

  mutating func noteFailure(_ key: Int, _ policy: LoadPolicy, _ number: Double) {
    var past = past[key] ?? Past()
    past.failureCount += 1
    let delay = min(
      policy.firstRetryDelay.milliseconds << Int64(min(20, past.failureCount - 1)),
      policy.longestRetryDelay.milliseconds)
    past.retryTime = now + max(1, Int64(Double(delay) * (1 - number / 2)))
    self.past[key] = past
  }

  /// A write or a removal of a key makes the cache forget the key's loads.
  mutating func forget(_ key: Int) { past[key] = nil }

  mutating func removeExpired(before end: Int64) {
    entries = entries.filter { $0.value.expires > end }
  }
}
