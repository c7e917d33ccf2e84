import Cairn
import CairnLibC
import CairnStore
import Dispatch
import FuzzSupport

/// Writes until it is killed, and reports each acknowledged write on standard output.
enum Writer {
  /// - Parameter mayFail: whether a failure ends the process with 3 and no message, because the
  ///   disk disappears.
  static func run(path: String, seed: UInt64, threads: Int, mayFail: Bool) throws {
    let store = try Store(path: path, configuration: configuration())
    DispatchQueue.concurrentPerform(iterations: threads) { thread in
      let workload = Workload(seed: seed, thread: thread)
      for number in 1... {
        do { try perform(workload.operation(number), in: store) } catch {
          if mayFail { _exit(3) }
          fail("\(error)")
        }
        acknowledge(Acknowledgement(thread: thread, number: number))
      }
    }
  }

  /// Writes to a store that others follow.
  static func runFollowed(path: String, seed: UInt64, base: Int) throws {
    let store = try Store(path: path, configuration: FollowedWorkload.configuration)
    try FollowedWorkload(seed: seed).run(in: store, base: base) { number in
      acknowledge(Acknowledgement(thread: 0, number: number))
    }
  }

  /// Writes to a cache that others follow.
  static func runFollowedCache(path: String, first: Int) throws {
    let cache = try DiskCache<String, String>.open(
      .path(path), configuration: FollowedCacheWorkload.configuration)
    try FollowedCacheWorkload.run(in: cache, from: first) { number in
      acknowledge(Acknowledgement(thread: 0, number: number))
    }
  }

  private static func perform(_ operation: Workload.Operation, in store: Store) throws {
    if operation.isBatch {
      try store.write(durability: operation.durability) { batch in
        for (key, value) in operation.changes {
          _ = try batch.value(forKey: key)
          if let value {
            try batch.setValue(value, forKey: key)
          } else {
            try batch.removeValue(forKey: key)
          }
        }
      }
    } else {
      for (key, value) in operation.changes {
        if let value {
          try store.setValue(value, forKey: key, durability: operation.durability)
        } else {
          try store.removeValue(forKey: key, durability: operation.durability)
        }
      }
    }
  }

  /// A write of so few bytes to a pipe is atomic.
  private static func acknowledge(_ acknowledgement: Acknowledgement) {
    let bytes = acknowledgement.encoded
    // SAFETY: the pointer is used for the call only, within the array's bounds.
    let count = unsafe bytes.withUnsafeBytes { unsafe write(1, $0.baseAddress, $0.count) }
    if count != bytes.count { exit(2) }
  }
}
