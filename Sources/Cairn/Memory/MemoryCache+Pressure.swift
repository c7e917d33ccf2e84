extension MemoryCache: PressureResponder {
  /// Shrinks the cache, as it does by itself if `respondsToMemoryPressure` is set. Call this if the
  /// program knows of a shortage that the system does not report. Observers receive the event
  /// before the cache shrinks.
  ///
  /// - Parameter pressure: `.moderate` removes expired entries, `.high` half of all entries and
  ///   half of their cost, and `.critical` all entries. Each also gives back the memory that the
  ///   cache itself no longer needs.
  public func respond(to pressure: MemoryPressure) {
    tell(.memoryPressure(pressure))
    switch pressure {
    case .moderate: trim(.expired)
    case .high:
      trim(.expired)
      let (count, cost) = lock.withLock { ($0.table.count / 2, $0.table.totalCost / 2) }
      _ = trim(order: .leastRecentlyUsed, cause: .memoryPressure) {
        $0.table.count > count || $0.table.totalCost > cost
      }
    case .critical: removeAll(cause: .evicted(.memoryPressure))
    }
    dropFreeSlots()
  }
}
