/// The extensions found while reading the log: the latest end for each put. Extensions may be read
/// in any order, before or after their puts.
struct ExtensionsByTarget {
  struct Known {
    var hash: UInt64
    var lifetime: LifetimeExtension
  }

  /// By the version of the put.
  private(set) var known: [SequenceNumber: Known] = [:]

  subscript(version: SequenceNumber) -> Known? { known[version] }

  mutating func add(
    _ header: RecordHeader, sequence: SequenceNumber, hash: UInt64, at location: Location,
    floor: SequenceNumber
  ) {
    // This library never writes an extension before the put that it extends.
    guard header.target > floor, header.target < sequence else { return }
    if let other = known[header.target], other.lifetime.expires >= header.expires { return }
    known[header.target] = Known(
      hash: hash,
      lifetime: LifetimeExtension(
        expires: header.expires, location: location, byteCount: header.byteCount))
  }
}
