import CairnStore
import Foundation
import FuzzSupport

/// The process that others follow. It performs the operations of a `FollowedHistory` until it is
/// killed.
enum FollowedWriter {
  /// - Parameter finishes: whether to end after recording the result of the last operation.
  static func run(
    store path: String, directory: String, _ history: FollowedHistory, finishes: Bool
  ) throws {
    let log = try FollowedWriterLog(path: directory + "/log")
    var store = try open(path)
    let begun = log.begun
    if begun > 0, log[begun] == nil {
      log[begun] = history.outcome(begun, held: try held(store, history))
    }
    if finishes { return try store.close() }
    var number = begun
    var random = FuzzRandom(seed: UInt64(begun))
    while number < FollowedWriterLog.capacity - 10 {
      number += 1
      log.begun = number
      switch history.operation(number) {
      case .reopen:
        try store.close()
        store = try open(path)
      default: try history.perform(number, in: store)
      }
      if case .trim = history.operation(number) {
        log[number] = history.outcome(number, held: try held(store, history))
      } else {
        log[number] = FollowedHistory.Outcome(isApplied: true)
      }
      log.done = number
      if random.once(in: 64) { usleep(UInt32(random.below(1000))) }
    }
    while true { sleep(1) }
  }

  private static func open(_ path: String) throws -> Store {
    try Store(path: path, configuration: FollowedWorkload.configuration)
  }

  /// For each key, the operation that wrote its value, or 0 if it has none.
  static func held(_ store: Store, _ history: FollowedHistory) throws -> [Int] {
    try (0..<FollowedHistory.keyCount).map { key in
      guard let value = try store.value(forKey: FollowedHistory.key(key)) else { return 0 }
      return try history.number(of: value, forKey: key)
    }
  }
}
