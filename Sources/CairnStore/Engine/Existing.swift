/// What a write found in the place it wrote to.
struct Existing {
  var hash: UInt64
  var location: Location
  var segment: Segment
  /// The record's size, or `nil` where it cannot be read and its size is unknown.
  var byteCount: Int?
  /// Why it cannot be read.
  var damage: StoreError?
  var sequence: SequenceNumber
  var hasExpired: Bool
  /// When its lifetime ends, in milliseconds; `nil` where it has no end.
  var expires: Int64?
}

/// The version that a write may depend on.
enum Expectation: Sendable {
  case anything
  case absent
  case version(SequenceNumber)
  /// Absent, and still wanted, which is asked under the log's lock.
  case absentAndWanted(@Sendable () -> Bool)
  /// Absent, expired or of this version, and still wanted, which is asked under the log's lock.
  case replaceableAndWanted(SequenceNumber, @Sendable () -> Bool)
  /// It has this version, and the answer is yes.
  case versionAndWanted(SequenceNumber, @Sendable () -> Bool)
  /// A record whose head is damaged, where it was found.
  case damaged(at: Location)
}

extension Optional<Existing> {
  /// The failure of a compare-and-set that finds this, or `nil` where it may go on.
  ///
  /// - Throws: where the version cannot be read and matters.
  func mismatch(_ expectation: Expectation) throws(StoreError) -> CompareAndSetResult? {
    if case .anything = expectation { return nil }
    if let damage = self?.damage {
      if case .damaged(let location) = expectation {
        if case .corrupt = damage {
          return self?.location == location ? nil : .mismatch(current: nil)
        }
      }
      throw damage
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
    case .damaged: return .mismatch(current: current)
    }
  }
}
