import Cairn

/// Collects entries into large writes. Most entries are small, and a separate write for each would
/// cost more than reading it.
struct WriteBatch {
  /// The number of entries written.
  private(set) var storedCount = 0

  private let store: Store
  private var pending: [(key: [UInt8], value: [UInt8], options: EntryOptions)] = []
  private var pendingByteCount = 0
  private static let countLimit = 256
  private static let byteLimit = 1 << 20

  init(store: Store) { self.store = store }

  /// Adds an entry, and writes what is pending once it is large enough. The last entry of a key
  /// counts.
  mutating func add(_ value: [UInt8], forKey key: [UInt8], options: EntryOptions) throws {
    if value.count >= WriteBatch.byteLimit {
      try flush()
      try store.setValue(value, forKey: key, options: options)
      storedCount += 1
      return
    }
    pending.append((key, value, options))
    pendingByteCount += key.count + value.count
    if pending.count >= WriteBatch.countLimit || pendingByteCount >= WriteBatch.byteLimit {
      try flush()
    }
  }

  /// Writes the pending entries.
  mutating func flush() throws {
    guard !pending.isEmpty else { return }
    let entries = pending
    try store.write { batch in
      for (key, value, options) in entries {
        try batch.setValue(value, forKey: key, options: options)
      }
    }
    storedCount += entries.count
    pending.removeAll(keepingCapacity: true)
    pendingByteCount = 0
  }
}
