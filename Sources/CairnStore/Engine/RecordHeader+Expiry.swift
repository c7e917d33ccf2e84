extension RecordHeader {
  /// When the record's entry may expire, or `nil` if never.
  @inline(__always)
  func deadline(accessed: () -> Timestamp) -> Deadline? {
    if !canExpire { return nil }
    let end = flags.contains(.expiry) ? expires : .max
    if !flags.contains(.idleLimit) { return Deadline(time: end, isExact: true) }
    let idleEnd = accessed().advanced(byMilliseconds: Int64(clamping: idleLimit))
    return Deadline(time: min(end, idleEnd.millisecondsSinceEpoch), isExact: false)
  }

  /// Whether the record's lifetime has ended, or its entry has been idle for too long.
  @inline(__always)
  func hasExpired(accessed: () -> Timestamp, now: Timestamp) -> Bool {
    if flags.contains(.expiry), expires <= now.millisecondsSinceEpoch { return true }
    if flags.contains(.idleLimit) {
      if now.milliseconds(since: accessed()) >= Int64(clamping: idleLimit) { return true }
    }
    return false
  }
}
