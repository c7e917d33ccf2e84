import CairnStore
import Foundation
import FuzzSupport
import KillWriter
import Synchronization
import Testing

@testable import Cairn

/// Threads that each follow a cache while the test continues.
private final class CacheReaders: Sendable {
  private let isOver = Atomic(false)
  private let acknowledged = Atomic(0)
  private let valueCount = Atomic(0)
  private let failure = Lock<(any Error)?>(nil)
  private let group = DispatchGroup()

  init(_ count: Int, _ open: @escaping @Sendable (Int) throws -> DiskCache<String, String>) {
    for index in 0..<count {
      group.enter()
      Thread.detachNewThread { [self] in
        do { try read(open(index)) } catch { failure.withLock { $0 = error } }
        group.leave()
      }
    }
  }

  private func read(_ cache: DiskCache<String, String>) throws {
    var reader = FollowedCacheWorkload.Reader()
    while !isOver.load(ordering: .acquiring) {
      try reader.look(at: cache, acknowledged: acknowledged.load(ordering: .acquiring))
    }
    valueCount.add(reader.valueCount, ordering: .relaxed)
    try cache.close()
  }

  func note(_ number: Int) { acknowledged.store(number, ordering: .releasing) }

  /// Ends the threads, and throws any error that one of them threw.
  func finish() throws -> Int {
    isOver.store(true, ordering: .releasing)
    group.wait()
    if let failure = failure.withLock({ $0 }) { throw failure }
    return valueCount.load(ordering: .relaxed)
  }
}

@Suite("Following the cache of a process that is killed")
struct FollowingCacheKillTests {
  /// The program `KillWriter`, which is beside the program that runs the tests.
  private static func program() throws -> URL {
    var url = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    if !url.path.contains("xctest") { url = URL(fileURLWithPath: CommandLine.arguments[0]) }
    while url.path != "/" {
      url.deleteLastPathComponent()
      let candidate = url.appendingPathComponent("KillWriter")
      if FileManager.default.isExecutableFile(atPath: candidate.path) { return candidate }
    }
    throw FollowedError("there is no KillWriter")
  }

  @Test("No value is older than one that was found before or one that was acknowledged")
  func kills() throws {
    let scene = DiskScene()
    let path = scene.path
    var readers: CacheReaders?
    var last = 0
    for round in 0..<4 {
      let process = Process()
      let output = Pipe()
      process.executableURL = try Self.program()
      process.arguments = ["followed-cache", path, "\(last + 1)"]
      process.standardOutput = output
      try process.run()
      var bytes: [UInt8] = []
      var count = 0
      while case let more = output.fileHandleForReading.availableData, !more.isEmpty {
        bytes += more
        while bytes.count >= Acknowledgement.byteCount {
          last = Acknowledgement(decoding: bytes[..<Acknowledgement.byteCount]).number
          bytes = Array(bytes.dropFirst(Acknowledgement.byteCount))
          count += 1
        }
        readers?.note(last)
        if readers == nil {
          // The three readers have all, some and no entries in memory.
          readers = CacheReaders(3) { index in
            var configuration = FollowedCacheWorkload.configuration
            if index < 2 {
              configuration.memory = MemoryConfiguration(
                countLimit: index == 0 ? nil : 8, costLimit: nil)
            }
            return try DiskCache.open(following: .path(path), configuration: configuration)
          }
        }
        if count >= 400 + 100 * round { kill(process.processIdentifier, SIGKILL) }
      }
      process.waitUntilExit()
      #expect(process.terminationReason == .uncaughtSignal)
      #expect(process.terminationStatus == SIGKILL, "\(String(decoding: bytes, as: UTF8.self))")
    }
    #expect(try #require(try readers?.finish()) > 1000)
    let cache = try DiskCache<String, String>.open(
      .path(path), configuration: FollowedCacheWorkload.configuration)
    var reader = FollowedCacheWorkload.Reader()
    try reader.look(at: cache, acknowledged: last)
    try cache.close()
  }
}
