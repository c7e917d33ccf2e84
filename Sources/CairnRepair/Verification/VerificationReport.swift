public import CairnStore

/// The result of checking every byte of a store's files.
public struct VerificationReport: Sendable, Hashable {
  /// Records with a sound head and, if they have one, a sound value.
  public var recordCount: Int = 0
  /// Bytes read.
  public var byteCount: Int = 0
  /// Bytes at the end of the log that the next open will discard. Zero if the store was closed.
  public var tornByteCount: Int = 0
  /// All errors found.
  public var errors: [Corruption] = []
  /// The keys of the damaged values among `errors`.
  public var keys: [Corruption: [UInt8]] = [:]
  /// The damaged values that no read needs, because a later record of the key replaces or removes
  /// them. A compaction drops them.
  public var replaced: Set<Corruption> = []

  package init() {}
}

extension VerificationReport: CustomStringConvertible {
  /// The amount checked, and the first ten errors, for people. Later versions may change the text.
  public var description: String {
    [
      "\(DisplayText.count(recordCount, "sound record")) in \(DisplayText.size(byteCount))",
      tornByteCount == 0 ? nil : DisplayText.count(tornByteCount, "unfinished byte"),
      errors.isEmpty
        ? "no errors" : DisplayText.count(errors.count, "error") + DisplayText.list(errors),
    ].compactMap(\.self).joined(separator: ", ")
  }
}
