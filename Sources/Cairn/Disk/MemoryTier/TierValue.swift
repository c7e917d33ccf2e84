public import CairnStore

/// A value in the memory tier, and what shows whether it is the value on disk.
@usableFromInline
struct TierValue<Value: Sendable>: Sendable {
  @usableFromInline let value: Value
  @usableFromInline let place: TierPlace

  @inlinable
  init(_ value: Value, _ place: TierPlace) {
    self.value = value
    self.place = place
  }
}

/// Identifies a value in memory: by the place of the record that it was made from or, as long as that
/// is not known, by its version. With what limits the use of the value.
///
/// The place of a written value is not known if the entry can expire, is large, or was written in a
/// batch. The first read then compares the versions, and notes the place and the times. In a cache
/// that follows, versions identify the values, each within a history of the followed store.
@usableFromInline
struct TierPlace: Sendable, Equatable {
  @inline(__always)
  private static var version: UInt64 { 1 << UInt64(RecordPlace.bitCount) }
  private static var idle: UInt64 { version << 1 }
  private static var tags: UInt64 { version << 2 }
  private static var kept: UInt64 { version << 3 }
  /// How many bits of the identity are for a version, if the others are for a history.
  private static var versionBitCount: UInt64 { 44 }

  private let bits: UInt64

  private init(
    _ identity: UInt64, isVersion: Bool, isIdle: Bool, hasTags: Bool, isKept: Bool = false
  ) {
    bits =
      identity & (Self.version - 1) | (isVersion ? Self.version : 0) | (isIdle ? Self.idle : 0)
      | (hasTags ? Self.tags : 0) | (isKept ? Self.kept : 0)
  }

  /// - Parameters:
  ///   - record: the place of the record, if it is known.
  ///   - isIdle: whether the entry has an idle limit, so that only the disk can tell whether it has
  ///     expired.
  ///   - hasTags: whether the entry has tags. While a tag is being removed, only the disk can tell
  ///     whether a mark hides the entry.
  @usableFromInline
  init(_ record: RecordPlace, version: UInt64, isIdle: Bool, hasTags: Bool) {
    let isVersion = record == .unknown
    self.init(
      isVersion ? version : record.rawValue, isVersion: isVersion, isIdle: isIdle,
      hasTags: hasTags)
  }

  /// The place of a value that was just written.
  @usableFromInline
  init(_ step: TierStep, isIdle: Bool, hasTags: Bool) {
    let isVersion = step.place == .unknown
    self.init(
      isVersion ? step.version : step.place.rawValue, isVersion: isVersion, isIdle: isIdle,
      hasTags: hasTags, isKept: step.isKept)
  }

  /// The place of a value in a cache that follows, or `nil` if the numbers do not fit: memory then
  /// keeps nothing.
  init?(history: UInt64, version: UInt64) {
    guard version >> Self.versionBitCount == 0,
      history >> (UInt64(RecordPlace.bitCount) - Self.versionBitCount) == 0
    else { return nil }
    self.init(
      history << Self.versionBitCount | version, isVersion: true, isIdle: false, hasTags: false)
  }

  /// The place of the record, if it is known.
  @usableFromInline var record: RecordPlace {
    RecordPlace(rawValue: isVersion ? 0 : bits & (Self.version - 1))
  }

  private var isVersion: Bool { bits & Self.version != 0 }

  /// Whether the identity is this version.
  @usableFromInline
  func isVersion(_ version: UInt64) -> Bool {
    isVersion && bits & (Self.version - 1) == version
  }

  /// Whether the place alone shows that the value is the one on disk.
  @inline(__always)
  var isPlain: Bool { bits >> UInt64(RecordPlace.bitCount) == 0 }
  var isIdle: Bool { bits & Self.idle != 0 }
  @usableFromInline var hasTags: Bool { bits & Self.tags != 0 }
  /// Whether only memory has the value, because the disk takes no more writes.
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
  let isKept: Bool

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
