import Cairn
import NearCache
import Synchronization

/// The readers and writers of one machine, at full speed.
package struct Workload: Sendable {
  /// This machine's number, from 0, and the number of machines. Each key is written by one machine.
  package var machine: Int
  package var machineCount: Int
  /// The number of earlier starts of this machine.
  package var incarnation: Int
  package var keyCount = 120
  package var writerCount = 2
  package var readerCount = 3

  package init(machine: Int, of machineCount: Int, incarnation: Int = 0) {
    (self.machine, self.machineCount, self.incarnation) = (machine, machineCount, incarnation)
  }

  /// The configuration of near caches in trials. Its times are short, so that many events happen.
  package static func configuration(
    _ endpoint: EngineEndpoint, lossPolicy: LossPolicy = .expireAtOnce
  ) -> NearCacheConfiguration {
    var engine = EngineConfiguration(endpoint: endpoint)
    engine.callTimeout = .milliseconds(200)
    engine.connectTimeout = .milliseconds(200)
    engine.longestRetryDelay = .milliseconds(100)
    var configuration = NearCacheConfiguration(
      prefix: "trial:", engine: engine,
      near: DiskCacheConfiguration(
        // Memory has room for half of the keys. The others are read from disk.
        countLimit: 1000, byteLimit: 64 << 20,
        memory: MemoryConfiguration(countLimit: 60)))
    configuration.stalenessLimit = .milliseconds(500)
    configuration.heartbeat = .milliseconds(50)
    configuration.lossPolicy = lossPolicy
    configuration.loadPolicy.staleOnError = .seconds(2)
    configuration.loadPolicy.firstRetryDelay = .milliseconds(20)
    configuration.loadPolicy.longestRetryDelay = .milliseconds(100)
    return configuration
  }

  private var process: Int { machine + incarnation * machineCount }

  /// Reads and writes until `isOver`.
  ///
  /// - Returns: the number of reads.
  package func run(
    _ cache: NearCache<String, String>, _ log: EventLog,
    until isOver: @escaping @Sendable () -> Bool
  ) async -> Int {
    let fence = Fence()
    return await withTaskGroup(of: Int.self) { group in
      for writer in 0..<writerCount {
        group.addTask {
          await write(writer, cache, log, isOver)
          return 0
        }
      }
      for _ in 0..<readerCount { group.addTask { await read(cache, log, fence, isOver) } }
      group.addTask {
        while !isOver() {
          let start = bootTime()
          if (try? await cache.catchUp()) != nil { fence.time.store(start, ordering: .releasing) }
          try? await Task.sleep(for: .milliseconds(3))
        }
        return 0
      }
      var count = 0
      for await reads in group { count += reads }
      return count
    }
  }

  private final class Fence: Sendable {
    let time = Atomic<Int64>(0)
  }

  private func write(
    _ writer: Int, _ cache: NearCache<String, String>, _ log: EventLog, _ isOver: () -> Bool
  ) async {
    let keys = (0..<keyCount).filter {
      $0 % machineCount == machine && $0 / machineCount % writerCount == writer
    }
    var number = Int64(incarnation) * 10_000_000
    while !isOver() {
      number += 1
      guard let key = keys.randomElement() else { return }
      var event = Event(
        kind: .begun, process: process, key: key, number: number, start: bootTime(), end: 0)
      log.add(event)
      do {
        try await cache.setValue("\(number)", forKey: "\(key)")
        event.kind = .acknowledged
        event.end = bootTime()
        log.add(event)
        // Keys are read more often than they are written.
        try await Task.sleep(for: .microseconds(Int.random(in: 0...2000)))
      } catch {
        // Calls fail at once while the circuit is open, so wait.
        try? await Task.sleep(for: .milliseconds(2))
      }
    }
  }

  /// Logs only the last of successive reads with the same result, because the model makes the
  /// strictest demands on it.
  private func read(
    _ cache: NearCache<String, String>, _ log: EventLog, _ fence: Fence, _ isOver: () -> Bool
  ) async -> Int {
    var count = 0
    var last: [Int: Event] = [:]
    var flush = bootTime()
    while !isOver() {
      count += 1
      if count % 32 == 0 { await Task.yield() }
      let key = min(Int.random(in: 0..<keyCount), Int.random(in: 0..<keyCount))
      let bound = fence.time.load(ordering: .acquiring)
      let start = bootTime()
      do {
        let answer = try await cache.answer(forKey: "\(key)")
        let event = Event(
          kind: .read, process: process, key: key, number: answer.flatMap { Int64($0.value) } ?? 0,
          start: start, end: bootTime(), isStale: answer?.source == .stale, fence: bound)
        if let old = last[key], old.number != event.number || old.isStale != event.isStale {
          log.add(old)
        }
        last[key] = event
      } catch {
        try? await Task.sleep(for: .milliseconds(1))
      }
      if start - flush > 50_000_000 {
        for event in last.values { log.add(event) }
        last = [:]
        flush = start
      }
    }
    for event in last.values { log.add(event) }
    return count
  }
}
