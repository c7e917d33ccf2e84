/// The result of a scrub.
public struct ScrubReport: Sendable, Hashable {
  /// Bytes read.
  public var byteCount: Int = 0
  /// Records with sound heads. The values that a read would find were also checked.
  public var recordCount: Int = 0
  /// Every damaged place, in the order of the segments.
  public var damage: [DamageEvent] = []
  /// Whether the scrub finished; `false` if the caller stopped it.
  public var isComplete: Bool = false

  /// Makes a report, so that a custom cache can report what it did.
  ///
  /// - Parameters: see the properties of the same names.
  package init(
    byteCount: Int = 0, recordCount: Int = 0, damage: [DamageEvent] = [], isComplete: Bool = false
  ) {
    self.byteCount = byteCount
    self.recordCount = recordCount
    self.damage = damage
    self.isComplete = isComplete
  }
}

/// A damaged place that a scrub found in the log. The scrub changed nothing there.
public struct DamageEvent: Sendable, Hashable {
  /// The file, the offset and the cause. A cause of `badValue` or `unreadable` at a value affects
  /// one key; `badRecordHeader` affects one key or more, or a removal.
  public var place: Corruption
  /// The keys whose newest values are there, if known: always for a damaged value; for a damaged
  /// head, if its key is still sound.
  public var keys: [[UInt8]]
  /// The number of keys whose newest value is there; larger than the number in `keys` if some keys
  /// are unknown. 0 if no read needs the damaged records: an open without a checkpoint then misses
  /// them.
  public var keyCount: Int

  /// Makes an event.
  ///
  /// - Parameters: see the properties of the same names.
  package init(place: Corruption, keys: [[UInt8]], keyCount: Int) {
    self.place = place
    self.keys = keys
    self.keyCount = keyCount
  }
}

/// The history of scrubs. A *cycle* reads the whole log once.
public struct ScrubStatistics: Sendable, Hashable {
  /// When the last cycle finished; `nil`: none has.
  public var lastCompleted: Timestamp?
  /// Damaged places that it found.
  public var lastDamageCount: Int = 0
  /// When maintenance began the current cycle; `nil`: none is under way.
  public var began: Timestamp?
  /// Damaged places that it has found so far.
  public var damageCount: Int = 0
  /// Its progress.
  public var progress: WorkProgress?
  /// Bytes read by all scrubs since the store was opened.
  public var readByteCount: Int = 0

  package init() {}
}
