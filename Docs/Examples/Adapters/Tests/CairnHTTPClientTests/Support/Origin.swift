import AsyncHTTPClient
import Cairn
import CairnHTTPClient
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Synchronization

/// A server on a free port of 127.0.0.1. The test defines its answers. Records the requests.
final class Origin: Sendable {
  typealias Answer = @Sendable (HTTPRequest) async throws -> Response

  private let state: Mutex<(answer: Answer, asked: [HTTPRequest])>

  init(_ answer: @escaping Answer) { state = Mutex((answer, [])) }

  var answer: Answer {
    get { state.withLock { $0.answer } }
    set { state.withLock { $0.answer = newValue } }
  }

  /// The requests so far.
  var asked: [HTTPRequest] { state.withLock { $0.asked } }

  /// Runs the server, and calls `body` with its address.
  func run(_ body: @Sendable (String) async throws -> Void) async throws {
    let router = Router()
    for method in [HTTPRequest.Method.get, .post] {
      router.on("**", method: method) { [self] request, _ in
        let answer = state.withLock { state in
          state.asked.append(request.head)
          return state.answer
        }
        return try await answer(request.head)
      }
    }
    try await Application(router: router).test(.live) { client in
      guard let port = client.port else { throw URLError(.cannotConnectToHost) }
      try await body("http://127.0.0.1:\(port)")
    }
  }
}

extension Response {
  /// A response with this text and these headers.
  static func text(
    _ text: String, _ headers: [String: String], status: HTTPResponse.Status = .ok
  ) -> Response {
    var fields = HTTPFields()
    for (name, value) in headers {
      if let name = HTTPField.Name(name) { fields[name] = value }
    }
    return Response(
      status: status, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
  }
}

/// A clock that the test advances.
final class TestClock: WallClock {
  private let time = Mutex(Timestamp(millisecondsSinceEpoch: 1_800_000_000_000))

  func now() -> Timestamp { time.withLock { $0 } }
  func elapsed() -> Duration? { nil }
  func advance(by duration: Duration) { time.withLock { $0 = $0.advanced(by: duration) } }
}

/// The parts of a response that tests compare.
struct Seen: Equatable {
  var status: UInt
  var text: String
  var age: String?

  init(_ status: UInt, _ text: String, age: String? = nil) {
    (self.status, self.text, self.age) = (status, text, age)
  }

  init(_ text: String, age: String? = nil) { self.init(200, text, age: age) }
}

extension HTTPClientCache {
  /// Gets a URL.
  func get(
    _ url: String, _ headers: [String: String] = [:], timeout: Int64 = 30
  ) async throws -> Seen {
    var request = HTTPClientRequest(url: url)
    for (name, value) in headers { request.headers.add(name: name, value: value) }
    let response = try await execute(request, timeout: .seconds(timeout))
    let body = try await response.body.collect(upTo: 1 << 20)
    return Seen(
      response.status.code, String(buffer: body), age: response.headers.first(name: "Age"))
  }
}
