/// The entry that a write found for its key.
struct Existing: BitwiseCopyable {
  var hash: UInt64
  var location: Location
  /// Where the entry was found in its shard, if that is known. It may have moved since.
  var slot = -1
  /// The record's size, or `nil` if the record cannot be read.
  var byteCount: Int?
  var sequence: SequenceNumber
  var hasExpired: Bool
}

/// The version that a write requires.
enum Expectation: Sendable {
  case anything
  case absent
  case version(SequenceNumber)
  /// The key is absent, and the write is still wanted. The closure is called under the log's lock.
  case absentAndWanted(@Sendable () -> Bool)
  /// The key is absent, expired or of this version, and the write is still wanted. The closure is
  /// called under the log's lock.
  case replaceableAndWanted(SequenceNumber, @Sendable () -> Bool)
  /// The key has this version, and the write is still wanted. The closure is called under the log's
  /// lock.
  case versionAndWanted(SequenceNumber, @Sendable () -> Bool)
  /// Like `versionAndWanted`, but the value may have expired.
  case recordAndWanted(SequenceNumber, @Sendable () -> Bool)
  /// The key's record has a damaged head and is at this location.
  case damaged(at: Location)
}

extension Optional<Existing> {
  /// The result of a compare-and-set that finds this entry or none, or `nil` if the compare-and-set
  /// may continue.
  func mismatch(_ expectation: Expectation) -> CompareAndSetResult? {
    if case .anything = expectation { return nil }
    if case .damaged(let location) = expectation, let self, self.byteCount == nil {
      return self.location == location ? nil : .mismatch(current: nil)
    }
    let current = flatMap { $0.hasExpired ? nil : $0.sequence }
    switch expectation {
    case .anything: return nil
    case .absent: return current == nil ? nil : .mismatch(current: current)
    case .version(let version): return current == version ? nil : .mismatch(current: current)
    case .absentAndWanted(let isWanted):
      return current == nil && isWanted() ? nil : .mismatch(current: current)
    case .replaceableAndWanted(let version, let isWanted):
      return (current == nil || current == version) && isWanted()
        ? nil : .mismatch(current: current)
    case .versionAndWanted(let version, let isWanted):
      return current == version && isWanted() ? nil : .mismatch(current: current)
    case .recordAndWanted(let version, let isWanted):
      return self?.sequence == version && isWanted() ? nil : .mismatch(current: current)
    case .damaged: return .mismatch(current: current)
    }
  }
}
