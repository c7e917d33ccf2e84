import CairnStore
import Foundation
import FuzzSupport
import KillWriter
import Synchronization
import Testing

/// Several threads that follow a store while the test continues, each with its own follower.
private final class FollowingThreads: Sendable {
  private final class Flag: Sendable { let value = Atomic(false) }
  private final class Number: Sendable { let value = Atomic(0) }
  private let flag: Flag
  private let known: Number
  private let states: Number
  private let threads: [Background]

  /// - Parameter open: opens what a thread follows.
  init(
    _ count: Int, _ workload: FollowedWorkload, _ open: @escaping @Sendable (Int) throws -> Store
  ) {
    let (isOver, acknowledged, stateCount) = (Flag(), Number(), Number())
    self.flag = isOver
    self.known = acknowledged
    self.states = stateCount
    threads = (0..<count).map { index in
      Background {
        let store = try open(index)
        var reader = FollowedWorkload.Reader(workload)
        while !isOver.value.load(ordering: .acquiring) {
          try reader.look(at: store, acknowledged: acknowledged.value.load(ordering: .acquiring))
        }
        stateCount.value.add(reader.stateCount, ordering: .relaxed)
        try store.close()
      }
    }
  }

  func note(_ number: Int) { known.value.store(number, ordering: .releasing) }

  /// Ends the threads, and throws any error that one of them threw.
  func finish() throws -> Int {
    flag.value.store(true, ordering: .releasing)
    for thread in threads {
      #expect(thread.finishes())
      if let error = thread.error { throw error }
    }
    return states.value.load(ordering: .relaxed)
  }
}

@Suite("Following a process that is killed")
struct FollowingKillTests {
  @Test(
    "Each state seen is one that the writer was in, in order, across kills",
    arguments: TemporaryDirectory.Medium.allCases)
  func kills(medium: TemporaryDirectory.Medium) throws {
    var generator = Seed.generator("kills \(medium)")
    let directory = try TemporaryDirectory(on: medium)
    let workload = FollowedWorkload(seed: generator.next() >> 1)
    var threads: FollowingThreads?
    var last = 0
    // A standing run sets the number of rounds.
    let wanted = ProcessInfo.processInfo.environment["CAIRN_FOLLOW_ROUNDS"].flatMap { Int($0) }
    for round in 0..<(wanted ?? 3) {
      let process = try KillWriterProcess(
        ["followed", directory.store, "\(workload.seed)", "\(last + 2)"])
      let limit = Int.random(in: 1..<200, using: &generator)
      var bytes: [UInt8] = []
      var count = 0
      while case let more = try process.read(), !more.isEmpty {
        bytes += more
        while bytes.count >= Acknowledgement.byteCount {
          let number = Acknowledgement(decoding: bytes[..<Acknowledgement.byteCount]).number
          bytes = Array(bytes.dropFirst(Acknowledgement.byteCount))
          last = max(last, number)
          count += 1
        }
        threads?.note(last)
        if threads == nil {
          threads = FollowingThreads(3, workload) { index in
            try Store.following(
              directory.store, .everyRead,
              .small { $0.mapsFiles = index != 0 })
          }
        }
        if count >= limit { process.kill() }
      }
      try #require(
        try process.wait() == 128 + SIGKILL,
        "round \(round): \(String(decoding: bytes.suffix(300), as: UTF8.self)); \(Seed.comment)")
    }
    let stateCount = try #require(try threads?.finish(), Seed.comment)
    #expect(stateCount > 10)
  }

  @Test("Threads follow a writer of their own process, which closes and opens the store")
  func threads() throws {
    var generator = Seed.generator()
    let directory = try TemporaryDirectory()
    let workload = FollowedWorkload(seed: generator.next() >> 1)
    var last = 0
    try Store.announcing(directory.store, FollowedWorkload.configuration).close()
    let threads = FollowingThreads(2, workload) { index in
      try Store.following(
        directory.store, .everyRead, .small { $0.mapsFiles = index != 0 })
    }
    for _ in 0..<4 {
      let store = try Store.announcing(directory.store, FollowedWorkload.configuration)
      let end = last + Int.random(in: 1..<200, using: &generator)
      try workload.run(in: store, base: last + 2, until: { last >= end }) {
        last = $0
        threads.note($0)
      }
      try store.close()
    }
    #expect(try threads.finish() > 5, Seed.comment)
  }
}
