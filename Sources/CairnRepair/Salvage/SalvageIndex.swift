import CairnStore

/// The newest record of every key of a damaged store. Stores whole keys, so no two keys are
/// confused.
///
/// The dictionary's hash is seeded at random in each process, so no choice of keys can make it
/// slow.
struct SalvageIndex: ~Copyable {
  enum State: UInt8 {
    case value, tombstone
    /// The key was written, but its newest value is unknown.
    case lost
  }

  struct Entry {
    /// The record's sequence number, or the range that contains it.
    var sequence: ClosedRange<Int64>
    var offset: Int
    var written: Int64?
    /// The segment's index in the list, or -1 if the newest record may be in one of several
    /// segments.
    var segment: Int32
    var state: State
  }

  private(set) var entries: [[UInt8]: Entry] = [:]
  /// Whether the order of any two records of one key was uncertain.
  private(set) var hasUncertainOrder = false

  /// Adds a record of a key.
  ///
  /// - Parameter isSound: whether the value of a record with the same sequence number is sound.
  ///   Called only if one record was found in two places.
  mutating func add(
    _ new: Entry, key: RawSpan, isSound: (Entry) throws(StoreError) -> Bool
  ) throws(StoreError) {
    let key = key.copied()
    guard let old = entries[key] else {
      entries[key] = new
      return
    }
    if let winner = try newer(old, new, isSound: isSound) { entries[key] = winner }
  }

  /// The newer of two records of one key, or `nil` to keep the old one.
  private mutating func newer(
    _ old: Entry, _ new: Entry, isSound: (Entry) throws(StoreError) -> Bool
  ) throws(StoreError) -> Entry? {
    // All numbers of one segment have the same base, even if that base is unknown.
    let isComparable = old.segment == new.segment && old.segment >= 0
    let (oldFirst, newFirst) = (old.sequence.lowerBound, new.sequence.lowerBound)
    if isComparable ? oldFirst < newFirst : old.sequence.upperBound < newFirst { return new }
    if isComparable ? newFirst < oldFirst : new.sequence.upperBound < oldFirst { return nil }
    if old.sequence == new.sequence && old.sequence.count == 1 {
      // An unfinished compaction leaves the same record twice. It copies only records that were
      // applied, so a copy is used even if it is unknown whether the record's batch was applied.
      if old.state == .lost && old.segment >= 0 && new.state == .value { return new }
      if old.state == .value && new.state == .value, try !isSound(old), try isSound(new) {
        return new
      }
      return nil
    }
    hasUncertainOrder = true
    let isGone = old.state == .tombstone && new.state == .tombstone
    return Entry(
      sequence: max(oldFirst, newFirst)...max(old.sequence.upperBound, new.sequence.upperBound),
      offset: 0, written: nil, segment: -1, state: isGone ? .tombstone : .lost)
  }

  /// The number of keys known to have had a value that is lost.
  var lostKeyCount: Int { entries.values.reduce(0) { $0 + ($1.state == .lost ? 1 : 0) } }
}
