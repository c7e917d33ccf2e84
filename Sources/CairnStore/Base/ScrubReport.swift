/// The result of a scrub.
public struct ScrubReport: Sendable, Hashable {
  /// Bytes read.
  public var byteCount: Int = 0
  /// Records with sound heads. For records that a read would find, the scrub checked the value too.
  public var recordCount: Int = 0
  /// Every damaged place, in the order of the segments.
  public var damage: [DamageEvent] = []
  /// Whether the scrub finished. `false` if the caller stopped it.
  public var isComplete: Bool = false
}

/// A damaged place that a scrub or a compaction found in the log. It was left unchanged, or copied.
public struct DamageEvent: Sendable, Hashable {
  /// The file, the offset and the cause. A damaged value affects one key. A damaged head
  /// (`badRecordHeader`) may affect several keys, or belong to a removal.
  public var place: Corruption
  /// The keys whose newest values are at this place, if known. The key of a damaged value is always
  /// known. The key of a damaged head is known only if the key's bytes are sound.
  public var keys: [[UInt8]]
  /// The number of keys whose newest values are at this place, including unknown keys. It is 0 if
  /// no read needs the damaged records, although an open without a checkpoint would still need
  /// them.
  public var keyCount: Int
}

/// The progress and the results of scrubs. A *cycle* reads the whole log once.
public struct ScrubStatistics: Sendable, Hashable {
  /// When the last cycle finished, or `nil` if none has.
  public var lastCompleted: Timestamp?
  /// Damaged places that the last cycle found.
  public var lastDamageCount: Int = 0
  /// When maintenance began the current cycle, or `nil` if none is in progress.
  public var began: Timestamp?
  /// Damaged places that the current cycle has found so far.
  public var damageCount: Int = 0
  /// The progress of the current cycle.
  public var progress: WorkProgress?
  /// Bytes read by all scrubs since the store was opened.
  public var readByteCount: Int = 0

  package init() {}
}
