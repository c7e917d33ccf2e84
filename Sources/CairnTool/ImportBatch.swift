import Cairn

/// Collects values into large writes. Most files of a tree are small, and a separate write for each
/// would cost more than reading it.
struct ImportBatch {
  /// The number of keys written.
  private(set) var storedCount = 0
  /// The number of keys that already had their value.
  private(set) var unchangedCount = 0

  private let store: Store
  /// The lifetime of the values.
  private let lifetime: Lifetime
  private var pending: [(key: [UInt8], value: [UInt8])] = []
  private var pendingByteCount = 0
  private static let countLimit = 256
  private static let byteLimit = 1 << 20

  /// - Parameter lifetime: the lifetime of the values, or `nil` for no end.
  init(store: Store, lifetime: Duration?) {
    self.store = store
    self.lifetime = lifetime.map { .after($0) } ?? .unlimited
  }

  /// Stores the value, unless the store already has it without an end of lifetime and none is
  /// requested. So a second import only completes the first.
  mutating func add(_ value: [UInt8], forKey key: [UInt8]) throws {
    if try isStored(value, forKey: key) {
      unchangedCount += 1
      return
    }
    if value.count >= ImportBatch.byteLimit {
      _ = try store.setValue(value, forKey: key, lifetime: lifetime)
      storedCount += 1
      return
    }
    pending.append((key, value))
    pendingByteCount += key.count + value.count
    if pending.count >= ImportBatch.countLimit || pendingByteCount >= ImportBatch.byteLimit {
      try flush()
    }
  }

  /// Writes the pending values.
  mutating func flush() throws {
    guard !pending.isEmpty else { return }
    let (values, lifetime) = (pending, lifetime)
    try store.write { batch in
      for (key, value) in values {
        try batch.setValue(value, forKey: key, lifetime: lifetime)
      }
    }
    storedCount += values.count
    pending.removeAll(keepingCapacity: true)
    pendingByteCount = 0
  }

  /// Whether the store has exactly this value for the key, without an end of lifetime. A damaged
  /// value counts as missing and is rewritten.
  private func isStored(_ value: [UInt8], forKey key: [UInt8]) throws -> Bool {
    if lifetime != .unlimited { return false }
    do {
      guard let info = try store.info(forKey: key), info.valueByteCount == value.count,
        info.expires == nil, info.idleLimit == nil
      else { return false }
      return try store.withValue(forKey: key) { stored in stored.equals(value) } ?? false
    } catch let error as StoreError {
      guard case .corrupt = error else { throw error }
      return false
    }
  }
}
