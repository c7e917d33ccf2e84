import CairnHummingbird
import Hummingbird

/// The session of a logged-in user.
struct Session: Codable, Sendable {
  var user: String
  var visitCount: Int
}

/// Adds the routes of sessions. A `POST` with a user begins a session and sets its cookie. A `GET`
/// counts a visit and returns the user and the count. A `DELETE` ends the session.
func addSessions(
  to router: Router<BasicRequestContext>, persist: CairnPersistDriver, lifetime: Duration
) {
  router.post("session") { request, _ in
    guard let user = request.uri.queryParameters.get("user") else { throw HTTPError(.badRequest) }
    let id = (0..<2).map { _ in String(UInt64.random(in: 0...UInt64.max), radix: 36) }
      .joined(separator: "-")
    try await persist.create(
      key: "session/\(id)", value: Session(user: user, visitCount: 0), expires: lifetime)
    var response = Response(status: .created)
    response.setCookie(Cookie(name: "session", value: id, path: "/", sameSite: .strict))
    return response
  }

  router.get("session") { request, _ in
    // Without `expires`, the session keeps its expiry.
    let session = try await persist.update(key: try key(request), as: Session.self) { session in
      guard var session else { throw HTTPError(.unauthorized) }
      session.visitCount += 1
      return session
    }
    return "\(session.user) \(session.visitCount)"
  }

  router.delete("session") { request, _ in
    try await persist.remove(key: try key(request))
    return HTTPResponse.Status.noContent
  }

  @Sendable func key(_ request: Request) throws -> String {
    guard let cookie = request.cookies["session"] else { throw HTTPError(.unauthorized) }
    return "session/\(cookie.value)"
  }
}
