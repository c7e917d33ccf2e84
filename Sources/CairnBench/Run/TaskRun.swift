import CairnStore
import Foundation
import Synchronization

/// Compares durable writes by tasks with those by threads, and checks whether the threads that run
/// tasks stay free meanwhile.
enum TaskRun {
  static let argument = "--tasks"

  private static let taskCount = 10_000
  private static let threadCount = 16
  private static let roundCount = 5
  private static let singleCount = 500
  private static let value = [UInt8](repeating: 7, count: 100)
  private static let beat = Duration.milliseconds(5)

  static func run(_ arguments: [String]) -> Int32 {
    let status = Mutex<Int32>(1)
    let done = DispatchSemaphore(value: 0)
    // Only the main thread waits. The measurement runs on the pool of tasks.
    Task.detached {
      do {
        let directory = try RunDirectory(in: arguments.first)
        print("\(directory.fileSystem.type) on \(directory.fileSystem.device)")
        try await measure(at: directory.path + "/tasks")
        status.withLock { $0 = 0 }
      } catch { print("\(error)") }
      done.signal()
    }
    done.wait()
    Cleanup.perform()
    return status.withLock { $0 }
  }

  private static func key(_ number: Int) -> [UInt8] { Array("key-\(1_000_000 + number)".utf8) }

  private static func measure(at path: String) async throws {
    let store = try await Store(path: path)
    var next = 0
    var threads: [Double] = []
    var tasks: [Double] = []
    var gaps: [Duration] = []
    var idleGaps: [Duration] = []
    var singles: [(thread: Double, task: Double)] = []
    // Interleaved, so that disturbances of the machine affect both.
    for _ in 0..<roundCount {
      threads.append(try await byThreads(store, from: next))
      next += taskCount
      let first = next
      let (rate, gap) = try await byTasks { number in
        try await store.setValue(value, forKey: key(first + number))
      }
      tasks.append(rate)
      gaps.append(gap)
      idleGaps.append(try await byTasks { _ in await Task.yield() }.gap)
      next += taskCount
      singles.append(
        (
          try await single(store, from: next) { store, key in
            _ = try store.synchronous { try $0.setValue(value, forKey: key) }
          },
          try await single(store, from: next + singleCount) { store, key in
            try await store.setValue(value, forKey: key)
          }
        ))
      next += 2 * singleCount
    }
    for number in 0..<next where try store.value(forKey: key(number)) != value {
      throw BenchFailure.unsuited("key \(number) does not have the value that was written")
    }
    try await store.close()
    let ratio = median(singles.map { $0.task / $0.thread })
    let (thread, task) = (median(singles.map(\.thread)) * 1e6, median(singles.map(\.task)) * 1e6)
    let rows = [
      ["durable writes, \(roundCount) rounds", "median"],
      ["by \(threadCount) threads", "\(Int(median(threads)))/s"],
      ["by \(taskCount) tasks", "\(Int(median(tasks)))/s"],
      ["  tasks / threads", decimal(median(tasks) / median(threads))],
      ["  longest gap of a heartbeat of 5 ms", text(gaps.max())],
      ["  the same beside tasks that only yield", text(idleGaps.max())],
      ["one after the other, by a thread", "\(Int(thread)) µs"],
      ["one after the other, by a task", "\(Int(task)) µs"],
      ["  task / thread", decimal(ratio)],
    ]
    print(TextTable.aligned(rows, leftAlignedColumnCount: 1), terminator: "")
  }

  private static func byThreads(_ store: Store, from first: Int) async throws -> Double {
    let start = ContinuousClock.now
    try await withThrowingTaskGroup(of: Void.self) { group in
      for thread in 0..<threadCount {
        group.addTask {
          try await onThread {
            for number in stride(from: thread, to: taskCount, by: threadCount) {
              try store.setValue(value, forKey: key(first + number))
            }
          }
        }
      }
      try await group.waitForAll()
    }
    return Double(taskCount) / seconds(ContinuousClock.now - start)
  }

  private static func onThread(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Void, any Error>) in
      Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
  }

  private static func text(_ gap: Duration?) -> String {
    "\(decimal(milliseconds(gap ?? .zero))) ms"
  }

  private static func byTasks(
    _ body: @escaping @Sendable (Int) async throws -> Void
  ) async throws -> (rate: Double, gap: Duration) {
    let heart = Task.detached { () -> Duration in
      var longest = Duration.zero
      var last = ContinuousClock.now
      while !Task.isCancelled {
        try? await Task.sleep(for: beat)
        let now = ContinuousClock.now
        longest = max(longest, now - last - beat)
        last = now
      }
      return longest
    }
    let start = ContinuousClock.now
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<taskCount {
        group.addTask { try await body(number) }
      }
      try await group.waitForAll()
    }
    let rate = Double(taskCount) / seconds(ContinuousClock.now - start)
    heart.cancel()
    return (rate, await heart.value)
  }

  /// The average time of one write, in seconds.
  private static func single(
    _ store: Store, from first: Int, _ write: (Store, [UInt8]) async throws -> Void
  ) async throws -> Double {
    let start = ContinuousClock.now
    for number in first..<(first + singleCount) { try await write(store, key(number)) }
    return seconds(ContinuousClock.now - start) / Double(singleCount)
  }

  private static func median(_ values: [Double]) -> Double {
    values.sorted()[values.count / 2]
  }

  private static func seconds(_ duration: Duration) -> Double { milliseconds(duration) / 1000 }

  private static func milliseconds(_ duration: Duration) -> Double {
    Double(duration.components.seconds) * 1000 + Double(duration.components.attoseconds) / 1e15
  }

  private static func decimal(_ value: Double) -> String { String(format: "%.2f", value) }
}
