import Cairn
import Foundation

/// The rules of RFC 9111.
package struct HTTPRules: Sendable {
  let isShared: Bool
  let staleIfError: Duration
  package let clock: any WallClock

  package init(isShared: Bool, staleIfError: Duration, clock: any WallClock) {
    self.isShared = isShared
    self.staleIfError = staleIfError
    self.clock = clock
  }

  /// Section 3: whether a response may be stored, and is worth storing.
  package func mayKeep(_ response: StoredResponse, to request: StoredRequest) -> Bool {
    let control = response.cacheControl
    guard [200, 203, 204, 300, 301, 308, 404, 410].contains(response.status),
      control["no-store"] == nil, !response.variation.contains("*")
    else { return false }
    if isShared {
      if control["private"] != nil { return false }
      let isOpen = ["public", "s-maxage", "must-revalidate"].contains { control[$0] != nil }
      if request.headers.contains(name: "Authorization"), !isOpen { return false }
    }
    return lifetime(of: response) > .zero || response["ETag"] != nil
      || response["Last-Modified"] != nil
  }

  /// Section 4.2: how long a response stays fresh from now; zero if it must be validated each time.
  package func lifetime(of response: StoredResponse) -> Duration {
    max(.zero, freshness(of: response) - .seconds(response.initialAge))
  }

  /// Section 4.2.1: how long a response is fresh after the origin created it.
  private func freshness(of response: StoredResponse) -> Duration {
    let control = response.cacheControl
    if control["no-cache"] != nil { return .zero }
    if isShared, let age = control["s-maxage"] { return .seconds(Int(age) ?? 0) }
    if let age = control["max-age"] { return .seconds(Int(age) ?? 0) }
    guard let expires = response["Expires"].flatMap(Self.date) else { return .zero }
    let date = response["Date"].flatMap(Self.date) ?? Date(clock.now())
    return .seconds(max(0, expires.timeIntervalSince(date)))
  }

  /// Section 4.2.4 and RFC 5861: whether a stale response may be returned while the origin fails.
  package func mayGive(_ response: StoredResponse, age: Duration) -> Bool {
    let control = response.cacheControl
    let shared = ["proxy-revalidate", "s-maxage"].contains { control[$0] != nil }
    if control["must-revalidate"] != nil || control["no-cache"] != nil || isShared && shared {
      return false
    }
    let limit = control["stale-if-error"].flatMap { Int($0) }.map { Duration.seconds($0) }
    return age - lifetime(of: response) <= limit ?? staleIfError
  }

  /// Whether a validated response need not be rewritten, because its lifetime and its lasting
  /// headers are the same as before.
  package func isSame(_ response: StoredResponse, as prior: StoredResponse) -> Bool {
    func lasting(_ response: StoredResponse) -> Set<StoredResponse.Field> {
      Set(response.fields.filter { !["date", "age", "expires"].contains($0.name.lowercased()) })
    }
    return lasting(response) == lasting(prior) && lifetime(of: response) == lifetime(of: prior)
  }

  /// Parses a date in HTTP's format.
  private static func date(_ text: String) -> Date? {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(identifier: "GMT")
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss zzz"
    return formatter.date(from: text)
  }
}
