internal import CairnStore

/// A value as a cache holds it, fresh or stale, with its times in milliseconds.
struct HeldValue<Value: Sendable>: Sendable {
  var value: Value
  var version: UInt64
  var written: Int64
  /// The end of its lifetime, or `never`.
  var expires: Int64
  /// The user's; empty where it was not asked for.
  var metadata: [UInt8] = []
}

/// What a value is looked for.
enum HeldPurpose {
  /// To be given to a caller, which counts as a read.
  case answer
  /// To see whether a load is needed after all.
  case check
  /// To be shown to a loader, with its metadata.
  case prior
}

/// What a policy says of a value that was found.
enum PolicyDecision: Equatable {
  /// It is given.
  case given
  /// It is given, and loaded anew in the background.
  case givenAndLoaded
  /// It is loaded; the value that was found is given if that fails or takes long.
  case loadedOrGiven
  /// It is loaded.
  case loaded
}

extension LoadPolicy {
  /// What is to be done about a value.
  ///
  /// - Parameters:
  ///   - validated: when it was written, or found not modified.
  ///   - retryTime: before which no load is tried.
  ///   - loadTime: how long its last load took; `nil`: nobody knows.
  ///   - random: a number from 0 up to 1; called only where it matters.
  func freshness(
    expires: Int64, validated: Int64, at now: Int64, retryTime: Int64, loadTime: Int64?,
    random: () -> Double
  ) -> PolicyDecision {
    let mayLoad = retryTime <= now
    if now < expires {
      if expires == never || !mayLoad { return .given }
      return isDue(expires, validated, now) || isDrawn(expires, now, loadTime, random)
        ? .givenAndLoaded : .given
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

  /// XFetch: whether this call is the one that loads early.
  private func isDrawn(
    _ expires: Int64, _ now: Int64, _ loadTime: Int64?, _ random: () -> Double
  ) -> Bool {
    guard let earlyRefresh, let loadTime, loadTime > 0 else { return false }
    // From above 0 up to 1, since its logarithm is asked for.
    let draw = 1 - random()
    return Double(loadTime) * earlyRefresh * -logarithm(draw) >= Double(expires) - Double(now)
  }
}
