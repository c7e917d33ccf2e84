/// The result of a scrub, or of checking every byte of a store's files.
public struct CheckReport: Sendable, Hashable {
  /// Records that are sound. A scrub checks the values only of records that a read would find.
  public package(set) var recordCount = 0
  /// Bytes read.
  public package(set) var byteCount = 0
  /// Bytes at the end of the log that the next open will discard. Zero if the store was closed, and
  /// for a scrub.
  public package(set) var tornByteCount = 0
  /// Every damaged place. Places that no read needs are included.
  public package(set) var damage: [Damage] = []
  /// Whether the check finished. `false` if the caller stopped it.
  public package(set) var isComplete = false

  package init() {}

  /// The damaged places.
  package var errors: [Corruption] { damage.map(\.place) }
}
