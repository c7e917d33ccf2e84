/// What a scrub found.
public struct ScrubReport: Sendable, Hashable {
  /// Bytes read.
  public var byteCount: Int = 0
  /// Records whose heads are sound. The values of those that a read would find were read too.
  public var recordCount: Int = 0
  /// Every place that is damaged, in the order of the segments.
  public var damage: [DamageEvent] = []
  /// Whether the scrub came to its end; `false` where the caller stopped it.
  public var isComplete: Bool = false

  /// Makes a report, for a cache of your own that says what it did.
  ///
  /// - Parameters: as the properties of these names.
  package init(
    byteCount: Int = 0, recordCount: Int = 0, damage: [DamageEvent] = [], isComplete: Bool = false
  ) {
    self.byteCount = byteCount
    self.recordCount = recordCount
    self.damage = damage
    self.isComplete = isComplete
  }
}

/// A damaged place that a scrub found in the log. Nothing was changed there.
public struct DamageEvent: Sendable, Hashable {
  /// The file, the offset and what is wrong. A cause of `badValue` or `unreadable` at a value costs one key;
  /// `badRecordHeader` one key or more, or a removal.
  public var place: Corruption
  /// The keys whose newest values lie there, as far as they can be told: always for a damaged value, and for a
  /// damaged head where its key is still sound.
  public var keys: [[UInt8]]
  /// How many keys have their newest value there; more than `keys` has where some cannot be told. 0 where the
  /// damage lies in records that no read asks for: then an open without a checkpoint misses them.
  public var keyCount: Int

  /// Makes an event.
  ///
  /// - Parameters: as the properties of these names.
  package init(place: Corruption, keys: [[UInt8]], keyCount: Int) {
    self.place = place
    self.keys = keys
    self.keyCount = keyCount
  }
}

/// What scrubs have done. A *cycle* reads the whole log once.
public struct ScrubStatistics: Sendable, Hashable {
  /// When the last cycle came to its end; `nil`: none has.
  public var lastCompleted: Timestamp?
  /// Places that it found damaged.
  public var lastDamageCount: Int = 0
  /// When the cycle of maintenance that is under way began; `nil`: none is.
  public var began: Timestamp?
  /// Places that it has found damaged so far.
  public var damageCount: Int = 0
  /// How far it has come.
  public var progress: WorkProgress?
  /// Bytes that all scrubs have read since the store was opened.
  public var readByteCount: Int = 0

  package init() {}
}
