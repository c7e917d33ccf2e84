extension MemoryCache: PressureResponder {
  /// Makes the cache smaller: drops what has expired, then half, then everything.
  package func respond(to pressure: MemoryPressure) {
    tell(.memoryPressure(pressure))
    switch pressure {
    case .moderate: removeExpired()
    case .high:
      removeExpired()
      let (count, cost) = lock.withLock { ($0.table.count / 2, $0.table.totalCost / 2) }
      _ = trim(order: .leastRecentlyUsed, cause: .memoryPressure) {
        $0.table.count > count || $0.table.totalCost > cost
      }
    case .critical: removeAll(cause: .evicted(.memoryPressure))
    }
  }
}
