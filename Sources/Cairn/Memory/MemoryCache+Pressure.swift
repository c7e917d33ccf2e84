extension MemoryCache: PressureResponder {
  /// Shrinks the cache, as the cache does by itself if `respondsToMemoryPressure` is set. Call this
  /// if the host knows more than the system reports. Observers receive the event first.
  ///
  /// - Parameter pressure: `.moderate` removes expired entries, `.high` half of the cache, and
  ///   `.critical` all of it.
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
