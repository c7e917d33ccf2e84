extension MemoryCache: PressureResponder {
  /// Makes the cache smaller, as it does by itself where `respondsToMemoryPressure` is set; to be called by a host that
  /// knows more than the system tells. Observers are told first.
  ///
  /// - Parameter pressure: `.moderate` removes what has expired, `.high` half of the cache, `.critical` all of it.
  public func respond(to pressure: MemoryPressure) {
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
