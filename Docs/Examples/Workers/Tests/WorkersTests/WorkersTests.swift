import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import Testing

@Suite("Workers behind one port", .serialized)
final class WorkersTests {
  private let directory = NSTemporaryDirectory() + "/workers-\(UUID().uuidString)"
  private let supervisor = Process()
  private let port: Int
  private let writePort: Int

  init() throws {
    // The program is in the same directory as the tests.
    let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let output = Pipe()
    supervisor.executableURL = URL(filePath: tests).deletingLastPathComponent()
      .appending(path: "workers")
    supervisor.arguments = [
      "--directory", directory, "--port", "0", "--write-port", "0", "--count", "3",
    ]
    supervisor.standardOutput = output
    try supervisor.run()
    var line = Data()
    while !line.contains(UInt8(ascii: "\n")) {
      let data = output.fileHandleForReading.availableData
      try #require(!data.isEmpty, "the program exited")
      line += data
    }
    let numbers = String(decoding: line, as: UTF8.self).split { !$0.isNumber }.compactMap {
      Int($0)
    }
    try #require(numbers.count == 2)
    (port, writePort) = (numbers[0], numbers[1])
  }

  deinit {
    supervisor.terminate()
    supervisor.waitUntilExit()
    try? FileManager.default.removeItem(atPath: directory)
  }

  struct Answer: Sendable {
    var status: UInt
    var text: String
    var worker: Int32
  }

  /// Sends a request on a new connection.
  private static func send(
    _ method: HTTPMethod, _ path: String, _ text: String = "", port: Int
  ) async throws -> Answer {
    let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHTTPClientHandlers()
          return try NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>(
            wrappingChannelSynchronously: channel)
        }
      }
    return try await channel.executeThenClose { inbound, outbound in
      let headers: HTTPHeaders = [
        "Host": "127.0.0.1", "Connection": "close", "Content-Length": "\(text.utf8.count)",
      ]
      // In one write, because a server may answer the head of a GET and close.
      try await outbound.write(contentsOf: [
        .head(HTTPRequestHead(version: .http1_1, method: method, uri: path, headers: headers)),
        .body(.byteBuffer(ByteBuffer(string: text))), .end(nil),
      ])
      var answer = Answer(status: 0, text: "", worker: 0)
      for try await part in inbound {
        switch part {
        case .head(let head):
          answer.status = head.status.code
          answer.worker = head.headers.first(name: "Worker").flatMap { Int32($0) } ?? 0
        case .body(let buffer): answer.text += String(buffer: buffer)
        case .end: return answer
        }
      }
      throw CocoaError(.fileReadUnknown)
    }
  }

  private func put(_ path: String, _ text: String) async throws -> Answer {
    try await Self.send(.PUT, path, text, port: writePort)
  }

  private func get(_ path: String) async throws -> Answer {
    try await Self.send(.GET, path, port: port)
  }

  /// Repeats a request until a restarted process answers it.
  private func again(_ body: () async throws -> Answer) async throws -> Answer {
    let end = ContinuousClock.now + .seconds(60)
    while true {
      do { return try await body() } catch {
        if ContinuousClock.now > end { throw error }
        await Task.yield()
      }
    }
  }

  @Test("Every worker reads each write at once")
  func readsOwnWrites() async throws {
    var workers: Set<Int32> = []
    #expect(try await get("/page").status == 404)
    for version in 1...30 {
      #expect(try await put("/page", "version \(version)").status == 204)
      for _ in 1...4 {
        let answer = try await get("/page")
        #expect(answer.status == 200)
        #expect(answer.text == "version \(version)")
        workers.insert(answer.worker)
      }
    }
    // Each of three workers gets some of 120 connections.
    #expect(workers.count == 3)
    #expect(try await Self.send(.DELETE, "/page", port: writePort).status == 204)
    #expect(try await get("/page").status == 404)
    #expect(try await Self.send(.PUT, "/page", "x", port: port).status == 405)
  }

  @Test("If a worker is killed, others answer and a new one is started")
  func killedWorker() async throws {
    #expect(try await put("/page", "text").status == 204)
    var workers: Set<Int32> = []
    while workers.count < 3 { workers.insert(try await get("/page").worker) }
    let victim = try #require(workers.first)
    kill(victim, SIGKILL)
    // In the end, as many workers as before answer, and one of them is new.
    var after: Set<Int32> = []
    while after.subtracting(workers).isEmpty || after.count < 3 {
      let answer = try await again { try await get("/page") }
      #expect(answer.text == "text")
      after.insert(answer.worker)
    }
    #expect(!after.subtracting(workers).contains(victim))
  }

  @Test("While the writer is dead, reads continue; the next writer takes over")
  func killedWriter() async throws {
    let writer = try await put("/page", "before").worker
    kill(writer, SIGKILL)
    for _ in 1...20 { #expect(try await get("/page").text == "before") }
    let answer = try await again { try await put("/page", "after") }
    #expect(answer.status == 204)
    #expect(answer.worker != writer)
    for _ in 1...20 { #expect(try await get("/page").text == "after") }
  }

  @Test("A signal during the start also ends all processes")
  func earlySignal() async throws {
    let other = Process()
    let path = directory + "-early"
    other.executableURL = supervisor.executableURL
    other.arguments = ["--directory", path, "--port", "0", "--write-port", "0", "--count", "3"]
    other.standardOutput = Pipe()
    try other.run()
    defer {
      kill(other.processIdentifier, SIGKILL)
      try? FileManager.default.removeItem(atPath: path)
    }
    // The writer creates the directory before any worker starts.
    while !FileManager.default.fileExists(atPath: path) { await Task.yield() }
    other.terminate()
    let end = ContinuousClock.now + .seconds(60)
    while other.isRunning {
      try #require(ContinuousClock.now < end)
      await Task.yield()
    }
    #expect(other.terminationReason == .exit)
    #expect(other.terminationStatus == 0)
  }
}
