import AsyncHTTPClient
import Foundation
import Synchronization

/// A response of the server.
struct Answer: Sendable {
  var status: Int
  var body: String
  /// The name and value of the cookie in the response.
  var cookie: String?
}

/// Sends requests to the server.
struct Client: Sendable {
  let url: String
  private let http: HTTPClient
  let counts = Counts()

  final class Counts: Sendable {
    let answered = Atomic(0)
    /// Requests without an answer. The server may or may not have carried them out.
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

  /// - Returns: `nil` if there was no answer because the server was killed or not running.
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

  /// Whether a `GET` succeeds. The request is not counted.
  func isAnswered(_ path: String) async -> Bool {
    let answer = try? await http.execute(HTTPClientRequest(url: url + path), timeout: .seconds(20))
    return answer?.status == .ok
  }

  /// Repeats a `GET` until there is an answer.
  func get(_ path: String, within limit: Duration = .seconds(60)) async throws -> Answer {
    let end = ContinuousClock.now + limit
    while ContinuousClock.now < end {
      if let answer = await ask(.get, path) { return answer }
    }
    throw CheckFailure("no answer to \(path) within \(limit)")
  }

  func close() async throws { try await http.shutdown() }
}

/// The reason why the check cannot continue.
struct CheckFailure: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) { self.description = description }
}

/// The failed expectations of a run.
final class Findings: Sendable {
  private let list = Mutex<[String]>([])

  func add(_ finding: String) {
    let count = list.withLock { list in
      list.append(finding)
      return list.count
    }
    // Printed at once, because the run may take much longer.
    if count <= 50 { FileHandle.standardError.write(Data("FAILED: \(finding)\n".utf8)) }
  }

  func expect(_ holds: Bool, _ finding: @autoclosure () -> String) {
    if !holds { add(finding()) }
  }

  var count: Int { list.withLock { $0.count } }
}
