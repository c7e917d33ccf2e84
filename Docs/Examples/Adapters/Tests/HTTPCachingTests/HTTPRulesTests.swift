import Cairn
import Foundation
import NIOHTTP1
import Testing

@testable import HTTPCaching

/// Tests the rules alone. The tests of `CairnHTTPClient` check how a client applies them.
@Suite("The rules of HTTP caches")
struct HTTPRulesTests {
  private func rules(isShared: Bool = true) -> HTTPRules {
    HTTPRules(isShared: isShared, staleIfError: .seconds(600), clock: SystemClock())
  }

  private func request(_ headers: HTTPHeaders = [:]) -> StoredRequest {
    StoredRequest(url: "http://example.org/", headers: headers)
  }

  private func response(
    _ headers: HTTPHeaders, status: UInt = 200, to request: HTTPHeaders = [:], delay: Int = 0
  ) -> StoredResponse {
    StoredResponse(
      status: status, headers: headers, body: Data(), to: self.request(request), delay: delay)
  }

  @Test(
    "How long a response is fresh in a shared and in a private cache",
    arguments: [
      ("max-age=60", 60, 60), ("MAX-AGE=60", 60, 60), (" public , max-age = \"60\" ", 60, 60),
      ("max-age=60, s-maxage=10", 10, 60), ("max-age=60, max-age=10", 60, 60),
      ("max-age=60, no-cache", 0, 0), ("max-age=-5", 0, 0), ("max-age=soon", 0, 0),
      ("max-age", 0, 0),
      (",,=,max-age=60", 60, 60), ("public", 0, 0), ("", 0, 0),
    ])
  func lifetimes(control: String, shared: Int, own: Int) {
    let response = response(["Cache-Control": control])
    #expect(rules().lifetime(of: response) == .seconds(shared))
    #expect(rules(isShared: false).lifetime(of: response) == .seconds(own))
  }

  @Test("Without a max-age, the time from Date to Expires counts; an invalid date means the past")
  func expires() {
    let date = "Fri, 15 Jan 2027 07:00:00 GMT"
    let later = response(["Date": date, "Expires": "Fri, 15 Jan 2027 08:00:00 GMT"])
    #expect(rules().lifetime(of: later) == .seconds(3600))
    #expect(rules().lifetime(of: response(["Date": date, "Expires": date])) == .zero)
    #expect(rules().lifetime(of: response(["Date": date, "Expires": "0"])) == .zero)
    let both = response([
      "Date": date, "Expires": "Fri, 15 Jan 2027 08:00:00 GMT", "Cache-Control": "max-age=60",
    ])
    #expect(rules().lifetime(of: both) == .seconds(60))
  }

  @Test(
    "The age on arrival and the duration of the request shorten the lifetime",
    arguments: [
      ("40", 20), ("x", 60), ("-5", 60), ("61", 0), ("9223372036854775807", 0),
    ])
  func initialAge(age: String, rest: Int) {
    let headers: HTTPHeaders = ["Cache-Control": "max-age=60", "Age": age]
    #expect(rules().lifetime(of: response(headers)) == .seconds(rest))
    let slow = response(headers, delay: 10)
    #expect(rules().lifetime(of: slow) == .seconds(max(0, rest - 10)))
    #expect(slow.headers(age: .seconds(1)).first(name: "Age") != nil)
  }

  @Test(
    "What may be stored: in a shared cache, in a private one, and for a request with a password",
    arguments: [
      ("max-age=60", true, true, false), ("max-age=60, private", false, true, false),
      ("max-age=60, public", true, true, true), ("s-maxage=60", true, false, true),
      ("max-age=60, must-revalidate", true, true, true),
      ("max-age=60, no-store", false, false, false),
      ("no-cache", false, false, false), ("", false, false, false),
    ])
  func keeping(control: String, shared: Bool, own: Bool, password: Bool) {
    let response = response(["Cache-Control": control])
    let secret = request(["Authorization": "Basic eDp5"])
    #expect(rules().mayKeep(response, to: request()) == shared)
    #expect(rules(isShared: false).mayKeep(response, to: request()) == own)
    #expect(rules().mayKeep(response, to: secret) == password)
  }

  @Test(
    "Responses that can be validated are stored; partial responses and errors are not")
  func statuses() {
    for name in ["ETag", "Last-Modified"] {
      #expect(rules().mayKeep(response([name: "x"]), to: request()))
    }
    let fresh: HTTPHeaders = ["Cache-Control": "max-age=60"]
    for (status, isKept) in [(404, true), (301, true), (206, false), (302, false), (400, false)] {
      let response = response(fresh, status: UInt(status))
      #expect(rules().mayKeep(response, to: request()) == isKept, "\(status)")
    }
    #expect(!rules().mayKeep(response(["ETag": "x", "Vary": "Accept, *"]), to: request()))
  }

  @Test(
    "How long a response is returned after its lifetime, while the origin fails",
    arguments: [
      ("max-age=60", 660, 660), ("max-age=60, stale-if-error=30", 90, 90),
      ("max-age=60, must-revalidate", -1, -1), ("max-age=60, proxy-revalidate", -1, 660),
      ("s-maxage=60", -1, 600), ("no-cache", -1, -1),
    ])
  func staleness(control: String, shared: Int, own: Int) {
    let response = response(["Cache-Control": control])
    for (rules, limit) in [(rules(), shared), (rules(isShared: false), own)] {
      for age in [0, 89, 90, 91, 599, 600, 601, 659, 660, 661] {
        #expect(rules.mayGive(response, age: .seconds(age)) == (age <= limit), "\(age)")
      }
    }
  }

  @Test("Headers of the connection, and headers that Connection names, are not stored")
  func connection() {
    let response = response([
      "Connection": "close, X-Hop", "X-Hop": "1", "Transfer-Encoding": "chunked", "X-Page": "2",
    ])
    #expect(response["X-Page"] == "2")
    for name in ["Connection", "X-Hop", "Transfer-Encoding"] { #expect(response[name] == nil) }
  }

  @Test("A 304 answer replaces the headers that it contains, and keeps the others")
  func renewal() {
    let old = response([
      "ETag": "1", "X-A": "1", "Content-Length": "5", "Cache-Control": "max-age=60",
    ])
    let new = old.renewed(
      by: response(["x-a": "2", "Content-Length": "0", "Age": "9"], status: 304))
    #expect(new.status == 200)
    #expect(["ETag", "X-A", "Content-Length"].map { new[$0] } == ["1", "2", "5"])
    #expect(rules().lifetime(of: new) == .seconds(51))
    #expect(!rules().isSame(new, as: old))
    let same = old.renewed(by: response(["ETag": "1", "Date": "now"], status: 304))
    #expect(rules().isSame(same, as: old))
  }

  @Test("Requests that differ in a header named by Vary have different keys")
  func keys() {
    let german: HTTPHeaders = ["Accept-Language": "de", "Accept": "a"]
    let response = response(["Vary": "accept-language, Accept-Encoding"], to: german)
    #expect(response.variation == ["accept-encoding", "accept-language"])
    #expect(response.selecting == ["", "de"])
    let names = response.variation
    let key = request(german).key(varyingBy: names)
    #expect(request(["accept-language": "de"]).key(varyingBy: names) == key)
    #expect(request(["Accept-Language": "en"]).key(varyingBy: names) != key)
    #expect(request().key(varyingBy: names) != key)
    #expect(request().tag == request(german).tag)
    #expect(StoredRequest(url: "http://example.org/2", headers: [:]).tag != request().tag)
  }
}
