/// The index's entry for one key, in 16 bytes:
///
///     63                      24 23             0
///     ┌─────────────────────────┬────────────────┐
///     │ hash (40)               │ tick, low (24) │  first
///     ├─────────────────────────┼──────────┬─────┤
///     │ location (40)           │ tick (20)│ 4   │  second; the last 4 bits are flags
///     └─────────────────────────┴──────────┴─────┘
///
/// An empty slot is all zero: no record has location 0.
package struct IndexEntry: BitwiseCopyable, Sendable {
  private var first: UInt64
  private var second: UInt64

  package static let tickLimit: UInt64 = 1 << 44

  @inline(__always)
  package init(hash: UInt64, location: Location, tick: UInt64, flags: Flags) {
    first = hash << 24 | tick & 0xFF_FFFF
    second = location.rawValue << 24 | (tick >> 24) << 4 | UInt64(flags.rawValue)
  }

  /// Decodes the entry from its `words`.
  @inline(__always)
  package init(decoding bytes: RawSpan, at offset: Int) {
    first = bytes.load(UInt64.self, at: offset)
    second = bytes.load(UInt64.self, at: offset + 8)
  }

  @inline(__always)
  init(_ first: UInt64, _ second: UInt64) {
    self.first = first
    self.second = second
  }

  /// The entry as stored in a slot and, with little-endian words, in a checkpoint.
  @inline(__always)
  package var words: (UInt64, UInt64) { (first, second) }

  /// An empty slot.
  package static let empty = IndexEntry(hash: 0, location: .none, tick: 0, flags: [])

  package struct Flags: OptionSet, Sendable {
    package var rawValue: UInt8
    @inline(__always)
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    /// The record has an expiry or an idle limit.
    package static let canExpire = Flags(rawValue: 1)
    /// The record is a tombstone. Set only while the log is replayed.
    package static let tombstone = Flags(rawValue: 2)
  }

  @inline(__always) package var isEmpty: Bool { second >> 24 == 0 }
  /// The upper 40 bits of the key's hash.
  @inline(__always) package var hash: UInt64 { first >> 24 }
  /// The part of the key's hash that the index knows; see `HashIndex.known`.
  package func hash(inShard shard: Int) -> UInt64 { hash << 24 | UInt64(shard) }
  @inline(__always) package var location: Location { Location(rawValue: second >> 24) }
  @inline(__always) package var flags: Flags { Flags(rawValue: UInt8(second & 0xF)) }

  /// When the entry was last read or written, in ticks.
  @inline(__always)
  package var tick: UInt64 {
    get { first & 0xFF_FFFF | (second >> 4 & 0xF_FFFF) << 24 }
    set {
      first = first & ~0xFF_FFFF | newValue & 0xFF_FFFF
      second = second & ~0xFF_FFF0 | (newValue >> 24) << 4
    }
  }
}
