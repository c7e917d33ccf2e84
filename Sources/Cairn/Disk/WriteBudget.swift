internal import CairnStore

/// Limits the bytes that are written per day. The budget grows evenly through the day, and keeps at
/// most an hour's share unspent.
final class WriteBudget: Sendable {
  private struct State: Sendable {
    var byteCount = 0.0
    /// When `hasBytes` was last called, or `nil` before the first call.
    var time: Int64?
  }

  private static let day = 86_400_000.0
  private let bytesPerDay: Double
  private let state: Lock<State>
  private var limit: Double { bytesPerDay / 24 }

  /// - Returns: `nil` if there is no budget.
  init?(_ configuration: DiskCacheConfiguration) throws(CacheError) {
    guard let bytesPerDay = configuration.loadedBytesPerDay else { return nil }
    guard bytesPerDay >= 1 else {
      throw .store(
        .invalidConfiguration(
          option: "loadedBytesPerDay", reason: "\(bytesPerDay); it must be 1 or more"))
    }
    self.bytesPerDay = Double(bytesPerDay)
    state = Lock(State())
  }

  /// Whether any budget is left. Writes that start at the same time may exceed it.
  func hasBytes(at now: Timestamp) -> Bool {
    state.withLock { state in
      let now = now.millisecondsSinceEpoch
      // The first call finds a full hour's share.
      let passed = state.time.map { max(0, Double(now) - Double($0)) } ?? .infinity
      state.byteCount = min(limit, state.byteCount + passed * bytesPerDay / Self.day)
      state.time = now
      return state.byteCount > 0
    }
  }

  func spend(_ byteCount: Int) { state.withLock { $0.byteCount -= Double(byteCount) } }
}
