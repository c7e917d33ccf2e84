internal import CairnStore

/// A value in a cache, fresh or stale, with its times in milliseconds.
struct HeldValue<Value: Sendable>: Sendable {
  var value: Value
  var version: UInt64
  var written: Int64
  /// The end of the value's lifetime, or `never`.
  var expires: Int64
  /// The user's metadata; empty if it was not requested.
  var metadata: [UInt8] = []
}

/// Why a value is looked up.
enum HeldPurpose {
  /// To return it to a caller. Counts as a read.
  case answer
  /// To check whether a load is still needed.
  case check
  /// To show it to a loader, with its metadata.
  case prior
}

/// A policy's decision for a value that was found.
enum PolicyDecision: Equatable {
  /// Return it.
  case given
  /// Return it, and load a new one in the background.
  case givenAndLoaded
  /// Load a new one. Return the value found if the load fails or takes long.
  case loadedOrGiven
  /// Load a new one.
  case loaded
}

extension LoadPolicy {
  /// Decides what to do with a value.
  ///
  /// - Parameters:
  ///   - validated: when the value was written or last found not modified.
  ///   - retryTime: when the next load may be tried.
  func freshness(
    expires: Int64, validated: Int64, at now: Int64, retryTime: Int64
  ) -> PolicyDecision {
    let mayLoad = retryTime <= now
    if now < expires {
      if expires == never || !mayLoad { return .given }
      return isDue(expires, validated, now) ? .givenAndLoaded : .given
    }
    let age = Double(now) - Double(expires)
    if age < Double(staleWhileRevalidating.milliseconds) {
      return mayLoad ? .givenAndLoaded : .given
    }
    if age < Double(staleOnError.milliseconds) { return mayLoad ? .loadedOrGiven : .given }
    return .loaded
  }

  private func isDue(_ expires: Int64, _ validated: Int64, _ now: Int64) -> Bool {
    guard let refreshAhead, refreshAhead < 1 else { return false }
    let lifetime = Double(expires) - Double(validated)
    return Double(now) - Double(validated) >= lifetime * refreshAhead
  }
}
