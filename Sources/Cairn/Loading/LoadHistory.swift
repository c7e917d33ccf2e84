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
    /// When the recorded absence of the value ends.
    var absenceEnd = Int64.min
    /// The tags whose removal ends the recorded absence.
    var tags: [String] = []

    /// When the record no longer delays a load.
    fileprivate var end: Int64 { max(retryTime, absenceEnd) }
    fileprivate var isEmpty: Bool {
      retryTime == .min && absenceEnd == .min && version == 0
    }
  }

  /// Some of the keys, so that calls for different keys rarely contend.
  private final class Stripe: Sendable {
    let records = Lock<[Key: Record]>([:])
  }

  private static var stripeCount: Int { 16 }
  /// How many records a stripe may have.
  private static var countLimit: Int { 4096 }
  /// How many records to compare when one must be forgotten.
  private static var candidateCount: Int { 8 }

  private let stripes = (0..<LoadHistory.stripeCount).map { _ in Stripe() }
  /// The number of records, or slightly more.
  private let count = Atomic(0)

  var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }

  private func stripe(_ key: Key) -> Stripe {
    stripes[Int(UInt(bitPattern: key.hashValue) % UInt(Self.stripeCount))]
  }

  /// Whether a loader has reported that the key has no value, and the time that it gave has not
  /// ended.
  func isAbsent(_ key: Key, at now: Int64) -> Bool {
    record(key).map { $0.absenceEnd > now } ?? false
  }

  func record(_ key: Key) -> Record? {
    if isEmpty { return nil }
    return stripe(key).records.withLock { $0[key] }
  }

  /// Changes the record of a key, unless `isOutdated` returns `true` by then. If there are too many
  /// records, forgets one: of the first few, the one that ends first.
  func change(
    _ key: Key, unless isOutdated: () -> Bool = { false }, _ body: (inout Record) -> Void
  ) {
    // Must come before the check: a caller that outdates the load forgets the record afterwards,
    // and must find it.
    count.add(1, ordering: .sequentiallyConsistent)
    let added = stripe(key).records.withLock { records -> Int in
      if isOutdated() { return 0 }
      let before = records.count
      if records[key] == nil, records.count >= Self.countLimit,
        let first = records.prefix(Self.candidateCount).min(by: { $0.value.end < $1.value.end })
      {
        records[first.key] = nil
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

  /// Forgets the absences with a tag.
  func forget(tag: String) {
    if isEmpty { return }
    for stripe in stripes {
      let count = stripe.records.withLock { records in
        let keys = records.compactMap { $0.value.tags.contains(tag) ? $0.key : nil }
        for key in keys { records[key] = nil }
        return keys.count
      }
      self.count.subtract(count, ordering: .sequentiallyConsistent)
    }
  }

  func forgetAll() {
    if isEmpty { return }
    for stripe in stripes {
      let gone = stripe.records.withLock { exchange(&$0, with: [:]) }
      count.subtract(gone.count, ordering: .sequentiallyConsistent)
    }
  }
}
