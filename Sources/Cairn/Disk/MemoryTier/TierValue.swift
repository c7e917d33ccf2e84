public import CairnStore

/// A value in the memory tier, and what shows whether it is the value on disk.
@usableFromInline
struct TierValue<Value: Sendable>: Sendable {
  @usableFromInline let value: Value
  @usableFromInline var place: TierPlace

  @inlinable
  init(_ value: Value, _ place: TierPlace) {
    self.value = value
    self.place = place
  }
}

/// The record that a value in memory was made from, with what limits the use of the value.
///
/// The place of a written value is not known if the entry can expire, or was written in a batch.
/// The first read then compares its version with the one on disk, and notes place and times.
@usableFromInline
struct TierPlace: Sendable, Equatable {
  /// The bits of `RecordPlace.rawValue`: `RecordPlace.bitCount` of them.
  private static var ofRecord: UInt64 { idle - 1 }
  private static var idle: UInt64 { 1 << 61 }
  private static var tags: UInt64 { 1 << 62 }
  private static var kept: UInt64 { 1 << 63 }

  private var bits: UInt64
  /// The hash of the key in the index, if the place is known.
  private var hash: UInt64 = 0

  /// - Parameters:
  ///   - isIdle: whether the entry has an idle limit, so that only the disk can tell whether it has
  ///     expired.
  ///   - hasTags: whether the entry has tags, one of which may have been removed.
  ///   - isKept: whether only memory has the value, because the disk takes no more writes.
  private init(isIdle: Bool, hasTags: Bool, isKept: Bool = false) {
    bits = (isIdle ? Self.idle : 0) | (hasTags ? Self.tags : 0) | (isKept ? Self.kept : 0)
  }

  @usableFromInline
  init(_ record: RecordPlace, isIdle: Bool, hasTags: Bool) {
    self.init(isIdle: isIdle, hasTags: hasTags)
    bits |= record.rawValue
    hash = record.hash
  }

  /// The place of a value that was just written.
  @usableFromInline
  init(_ step: TierStep, isIdle: Bool, hasTags: Bool) {
    self.init(isIdle: isIdle, hasTags: hasTags, isKept: step.isKept)
    bits |= step.place.rawValue
    hash = step.place.hash
  }

  @usableFromInline var record: RecordPlace {
    RecordPlace(rawValue: bits & Self.ofRecord, hash: hash)
  }
  /// Whether the place alone shows that the value is the one on disk.
  var isPlain: Bool { bits & ~Self.ofRecord == 0 }
  var isIdle: Bool { bits & Self.idle != 0 }
  @usableFromInline var hasTags: Bool { bits & Self.tags != 0 }
  var isKept: Bool { bits & Self.kept != 0 }
}

/// The version that a write of a value has got, for memory.
@usableFromInline
struct TierStep: Sendable {
  @usableFromInline let version: UInt64
  /// The size of the value on disk.
  @usableFromInline let byteCount: Int
  /// The place of the record, if it is known and the entry cannot expire.
  let place: RecordPlace
  /// Whether only memory keeps the value, because the disk takes no more writes.
  var isKept = false

  init(
    version: UInt64, byteCount: Int, place: RecordPlace = .unknown, isKept: Bool = false
  ) {
    self.version = version
    self.byteCount = byteCount
    self.place = place
    self.isKept = isKept
  }

  @usableFromInline var neverExpires: Bool { place != .unknown }
}
