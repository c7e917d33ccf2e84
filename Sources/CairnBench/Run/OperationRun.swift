import Cairn
import CairnLibC
import CairnStore
import FoundationEssentials

/// A hidden subcommand that performs only one kind of operation, so that `Fuzz/instructions` can
/// count the instructions of each kind.
enum OperationRun: String, CaseIterable {
  case fill, overwrite, remove, get, absent, interval, durable, batch, trim, compaction
  case open = "open-after-kill"
  case diskSet = "disk-set"
  case diskGet = "disk-get"
  case tieredSet = "tiered-set"
  case tieredGet = "tiered-get"
  case tieredMiss = "tiered-miss"
  case hitLRU = "memory-hit-lru"
  case hitSieve = "memory-hit-sieve"
  case hitS3FIFO = "memory-hit-s3-fifo"
  case missLRU = "memory-miss-lru"
  case missSieve = "memory-miss-sieve"
  case missS3FIFO = "memory-miss-s3-fifo"

  static let argument = "--operations"

  private static let keyCount = 1000
  private static let value = [UInt8](repeating: 7, count: 100)

  /// Performs an operation the given number of times in a new directory, which is removed at the
  /// end.
  static func run(_ arguments: [String]) -> Int32 {
    guard arguments.count == 3, let operation = OperationRun(rawValue: arguments[0]),
      let count = Int(arguments[1])
    else {
      print(OperationRun.allCases.map(\.rawValue).joined(separator: " "))
      return 2
    }
    let path = "\(arguments[2])/operations-\(getpid())"
    do {
      try operation.perform(count, at: path)
      return 0
    } catch {
      print("\(operation.rawValue): \(error)")
      return 1
    }
  }

  private func perform(_ count: Int, at path: String) throws {
    defer { try? FileManager.default.removeItem(atPath: path) }
    switch self {
    case .diskSet, .diskGet, .tieredSet, .tieredGet, .tieredMiss: try useCache(count, at: path)
    case .hitLRU: useMemory(count, .leastRecentlyUsed, findsAll: true)
    case .hitSieve: useMemory(count, .sieve, findsAll: true)
    case .hitS3FIFO: useMemory(count, .s3FIFO, findsAll: true)
    case .missLRU: useMemory(count, .leastRecentlyUsed, findsAll: false)
    case .missSieve: useMemory(count, .sieve, findsAll: false)
    case .missS3FIFO: useMemory(count, .s3FIFO, findsAll: false)
    case .open: try openAfterKill(count, at: path)
    default: try useStore(count, at: path)
    }
  }

  private static var configuration: StoreConfiguration {
    var configuration = StoreConfiguration()
    configuration.durability = .process
    configuration.maintenanceInterval = nil
    return configuration
  }

  private static func key(_ number: Int) -> [UInt8] { Array("key-\(1_000_000 + number)".utf8) }

  /// The counted part. `Fuzz/instructions` finds this function by its name.
  @inline(never)
  private func countedOperations(_ body: () throws -> Void) rethrows { try body() }

  private func useStore(_ count: Int, at path: String) throws {
    let store = try Store(path: path, configuration: Self.configuration)
    // Make the keys first, because making a key takes as long as a read.
    let keys = (0..<Self.keyCount + count).map(Self.key)
    for key in keys.prefix(Self.keyCount) { try store.setValue(Self.value, forKey: key) }
    switch self {
    case .fill:
      try countedOperations {
        for key in keys.dropFirst(Self.keyCount) { try store.setValue(Self.value, forKey: key) }
      }
    case .overwrite, .interval, .durable:
      let durability: Durability =
        switch self {
        case .interval: .interval(.seconds(1))
        case .durable: .durable
        default: .process
        }
      try countedOperations {
        for number in 0..<count {
          try store.setValue(
            Self.value, forKey: keys[number % Self.keyCount], durability: durability)
        }
      }
    case .get, .absent:
      let first = self == .get ? 0 : Self.keyCount
      try countedOperations {
        for number in 0..<count {
          let value = try store.value(forKey: keys[first + number % Self.keyCount])
          precondition((value == nil) == (self == .absent))
        }
      }
    case .batch:
      try countedOperations {
        for number in 0..<count {
          try store.write(durability: .durable) { batch in
            for part in 0..<10 {
              try batch.setValue(Self.value, forKey: keys[(10 * number + part) % Self.keyCount])
            }
          }
        }
      }
    case .remove:
      for key in keys.dropFirst(Self.keyCount) { try store.setValue(Self.value, forKey: key) }
      try countedOperations {
        for key in keys.dropFirst(Self.keyCount) { try store.removeValue(forKey: key) }
      }
    case .trim:
      for key in keys.dropFirst(Self.keyCount) { try store.setValue(Self.value, forKey: key) }
      try countedOperations { _ = try store.trim(.toCount(Self.keyCount)) }
    case .compaction:
      for number in 0..<Self.keyCount / 2 { try store.removeValue(forKey: keys[2 * number]) }
      try countedOperations { _ = try store.compact() }
    default: break
    }
    try store.close()
  }

  private func openAfterKill(_ count: Int, at path: String) throws {
    let copy = path + "-killed"
    defer { try? FileManager.default.removeItem(atPath: copy) }
    let store = try Store(path: path, configuration: Self.configuration)
    for number in 0..<Self.keyCount { try store.setValue(Self.value, forKey: Self.key(number)) }
    for _ in 0..<count {
      // The files of an open store are in the same state as after a kill.
      try FileManager.default.copyItem(atPath: path, toPath: copy)
      let killed = try counting {
        try Store(path: copy, configuration: Self.configuration)
      }
      let found = try killed.count()
      precondition(found == Self.keyCount)
      try killed.close()
      try FileManager.default.removeItem(atPath: copy)
    }
    try store.close()
  }

  private func counting<Result>(_ body: () throws -> Result) rethrows -> Result {
    var result: Result?
    try countedOperations { () throws in result = try body() }
    guard let result else { preconditionFailure("it was run") }
    return result
  }

  /// Reads keys in turn, and writes the missing ones.
  ///
  /// - Parameter findsAll: whether the cache contains all of the keys; otherwise it contains none.
  private func useMemory(_ count: Int, _ policy: EvictionPolicy, findsAll: Bool) {
    var configuration = MemoryConfiguration(countLimit: Self.keyCount)
    configuration.policy = policy
    let cache = MemoryCache<Int, Int>(configuration: configuration)
    for key in 0..<Self.keyCount { cache.setValue(key, forKey: key) }
    countedOperations {
      for number in 0..<count {
        let key = findsAll ? number % Self.keyCount : Self.keyCount + number
        if let value = cache.value(forKey: key) {
          precondition(findsAll && value == key)
        } else {
          precondition(!findsAll)
          cache.setValue(key, forKey: key)
        }
      }
    }
  }

  private func useCache(_ count: Int, at path: String) throws {
    var configuration = DiskCacheConfiguration()
    configuration.store = Self.configuration
    switch self {
    case .tieredSet, .tieredGet:
      configuration.memory = MemoryConfiguration(
        countLimit: 5 * Self.keyCount, costLimit: nil)
    case .tieredMiss:
      configuration.memory = MemoryConfiguration(countLimit: 1)
    default: break
    }
    let cache = try DiskCache<String, [UInt8]>.open(.path(path), configuration: configuration)
    let keys = (0..<Self.keyCount).map { "key-\(1_000_000 + $0)" }
    for key in keys { try cache.setValue(Self.value, forKey: key) }
    switch self {
    case .diskSet, .tieredSet:
      try countedOperations {
        for number in 0..<count {
          try cache.setValue(Self.value, forKey: keys[number % keys.count])
        }
      }
    default:
      try countedOperations {
        for number in 0..<count {
          let value = try cache.value(forKey: keys[number % keys.count])
          precondition(value != nil)
        }
      }
    }
    try cache.close()
  }
}
