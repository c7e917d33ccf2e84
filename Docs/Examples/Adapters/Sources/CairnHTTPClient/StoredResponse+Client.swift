import AsyncHTTPClient
import HTTPCaching
import NIOCore
import NIOHTTP1

extension StoredResponse {
  /// The response to return.
  ///
  /// - Parameter age: the time since it was cached; `nil` if it comes from the origin.
  func response(age: Duration?) -> HTTPClientResponse {
    HTTPClientResponse(
      status: HTTPResponseStatus(statusCode: Int(status)), headers: headers(age: age),
      body: .bytes(ByteBuffer(bytes: body)))
  }
}
