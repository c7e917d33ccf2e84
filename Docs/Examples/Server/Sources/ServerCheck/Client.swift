import AsyncHTTPClient
import Foundation
import Synchronization

/// What the server answered.
struct Answer: Sendable {
  var status: Int
  var body: String
  /// The name and the value of the cookie that it set.
  var cookie: String?
}

/// Asks the server.
struct Client: Sendable {
  let url: String
  private let http: HTTPClient
  let counts = Counts()

  final class Counts: Sendable {
    let answered = Atomic(0)
    /// Requests without an answer: nobody knows whether the server did what they asked for.
    let unanswered = Atomic(0)
  }

  init(port: Int) {
    url = "http://127.0.0.1:\(port)"
    var configuration = HTTPClient.Configuration()
    configuration.httpVersion = .http1Only
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 512
    configuration.connectionPool.retryConnectionEstablishment = false
    http = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }

  enum Method: String {
    case get = "GET"
    case post = "POST"
    case delete = "DELETE"
  }

  /// - Returns: `nil` where there was no answer, since the server was killed or was not there.
  func ask(_ method: Method, _ path: String, cookie: String? = nil) async -> Answer? {
    var request = HTTPClientRequest(url: url + path)
    request.method = .RAW(value: method.rawValue)
    if let cookie { request.headers.add(name: "Cookie", value: cookie) }
    do {
      let response = try await http.execute(request, timeout: .seconds(20))
      let body = try await response.body.collect(upTo: 1 << 20)
      counts.answered.add(1, ordering: .relaxed)
      return Answer(
        status: Int(response.status.code), body: String(buffer: body),
        cookie: response.headers.first(name: "Set-Cookie").map { String($0.prefix { $0 != ";" }) })
    } catch {
      counts.unanswered.add(1, ordering: .relaxed)
      try? await Task.sleep(for: .milliseconds(20))
      return nil
    }
  }

  /// Whether a `GET` is answered. Is not counted.
  func isAnswered(_ path: String) async -> Bool {
    let answer = try? await http.execute(HTTPClientRequest(url: url + path), timeout: .seconds(20))
    return answer?.status == .ok
  }

  /// Asks until there is an answer: for what changes nothing.
  func get(_ path: String, within limit: Duration = .seconds(60)) async throws -> Answer {
    let end = ContinuousClock.now + limit
    while ContinuousClock.now < end {
      if let answer = await ask(.get, path) { return answer }
    }
    throw CheckFailure("no answer to \(path) within \(limit)")
  }

  func close() async throws { try await http.shutdown() }
}

/// Why the check cannot go on.
struct CheckFailure: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) { self.description = description }
}

/// What is not as it should be.
final class Findings: Sendable {
  private let list = Mutex<[String]>([])

  func add(_ finding: String) {
    let count = list.withLock { list in
      list.append(finding)
      return list.count
    }
    // At once, however long the rest takes.
    if count <= 50 { FileHandle.standardError.write(Data("NOT SO: \(finding)\n".utf8)) }
  }

  func expect(_ holds: Bool, _ finding: @autoclosure () -> String) {
    if !holds { add(finding()) }
  }

  var count: Int { list.withLock { $0.count } }
}
