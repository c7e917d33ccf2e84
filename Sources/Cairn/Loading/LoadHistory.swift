internal import CairnStore
internal import Synchronization

/// What the process knows about the loads of keys, besides the stored entries. Forgetting it is
/// safe: a load is then attempted earlier than necessary.
final class LoadHistory<Key: Hashable & Sendable>: Sendable {
  struct Record {
    /// The number of failed loads since the last success.
    var failureCount = 0
    /// No load is attempted before this time, in milliseconds, if a value can be returned.
    var retryTime = Int64.min
    /// The version that was found unmodified, and when it was.
    var version: UInt64 = 0
    var validated = Int64.min
    /// How long the last load took, in milliseconds.
    var loadTime: Int64?
    /// When the recorded absence of the value ends.
    var absenceEnd = Int64.min

    fileprivate func isOver(at now: Int64) -> Bool { retryTime <= now && absenceEnd <= now }
    fileprivate var isEmpty: Bool {
      retryTime == .min && absenceEnd == .min && version == 0 && loadTime == nil
    }
  }

  /// Some of the keys, so that calls for different keys rarely contend.
  private final class Stripe: Sendable {
    let records = Lock<[Key: Record]>([:])
  }

  private static var stripeCount: Int { 16 }
  /// The limit for each stripe.
  private static var countLimit: Int { 4096 }

  private let stripes = (0..<LoadHistory.stripeCount).map { _ in Stripe() }
  /// The number of records, or slightly more.
  private let count = Atomic(0)

  var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }

  private func stripe(_ key: Key) -> Stripe {
    stripes[Int(UInt(bitPattern: key.hashValue) % UInt(Self.stripeCount))]
  }

  func record(_ key: Key) -> Record? {
    if isEmpty { return nil }
    return stripe(key).records.withLock { $0[key] }
  }

  /// Changes the record of a key, unless `isOutdated` returns `true` by then.
  func change(
    _ key: Key, now: Int64, unless isOutdated: () -> Bool, _ body: (inout Record) -> Void
  ) {
    // Must come before the check: a caller that outdates the load forgets the record afterwards,
    // and must find it.
    count.add(1, ordering: .sequentiallyConsistent)
    let added = stripe(key).records.withLock { records -> Int in
      if isOutdated() { return 0 }
      let before = records.count
      if records[key] == nil, records.count >= Self.countLimit {
        records = records.filter { !$0.value.isOver(at: now) }
        if records.count >= Self.countLimit { records = [:] }
      }
      var record = records[key] ?? Record()
      body(&record)
      records[key] = record.isEmpty ? nil : record
      return records.count - before
    }
    count.add(added - 1, ordering: .sequentiallyConsistent)
  }

  func forget(_ key: Key) {
    if isEmpty { return }
    let isThere = stripe(key).records.withLock { $0.removeValue(forKey: key) != nil }
    if isThere { count.subtract(1, ordering: .sequentiallyConsistent) }
  }

  func forgetAll() {
    if isEmpty { return }
    for stripe in stripes {
      let gone = stripe.records.withLock { exchange(&$0, with: [:]) }
      count.subtract(gone.count, ordering: .sequentiallyConsistent)
    }
  }
}
