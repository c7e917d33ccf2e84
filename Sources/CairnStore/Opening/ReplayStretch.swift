/// Records of the log that are added to the index together. They are added shard by shard, so each
/// shard's table stays in the processor's caches. Before that, the heads of all records that they
/// may replace are read in disk order.
struct ReplayStretch: ~Copyable {
  /// The parts of a record that its entry needs.
  struct Member: BitwiseCopyable {
    let hash: UInt64
    let sequence: SequenceNumber
    private var place: UInt64
    fileprivate var keyStart: UInt32
    private let unitCount: UInt32
    fileprivate let keyByteCount: UInt16

    init(
      _ header: RecordHeader, hash: UInt64, sequence: SequenceNumber, at location: Location,
      keyStart: Int
    ) {
      self.hash = hash
      self.sequence = sequence
      var flags: IndexEntry.Flags = header.canExpire ? .canExpire : []
      if header.kind == .tombstone { flags.insert(.tombstone) }
      place = location.rawValue << 24 | UInt64(flags.rawValue)
      self.keyStart = UInt32(keyStart)
      unitCount = UInt32(header.byteCount >> 3)
      keyByteCount = UInt16(header.keyByteCount)
    }

    /// The same record in a segment with this first granule, whose key is this much further on.
    fileprivate func moved(to granule: Int, keysBy keyByteCount: Int) -> Member {
      var moved = self
      moved.place += Location(granule: granule, offset: 0).rawValue << 24
      moved.keyStart += UInt32(keyByteCount)
      return moved
    }

    var location: Location { Location(rawValue: place >> 24) }
    var flags: IndexEntry.Flags { IndexEntry.Flags(rawValue: UInt8(place & 0xF)) }
    var byteCount: Int { Int(unitCount) << 3 }
  }

  /// The newest record of its key in the stretch.
  struct Newest: BitwiseCopyable {
    fileprivate var member: Member
    /// Whether the index has a newer record of the key.
    fileprivate var isOld = false
    /// The location of the index entry that the record replaces.
    fileprivate var known = Location.none
  }

  /// The input of a comparison, prefetched into the cache.
  private struct Staged {
    let member: Member
    var firstByte: UInt8 = 0
  }

  /// An index entry that may have the same key as one of the newest records of the stretch. The
  /// word contains the location of the entry's record, whether that is a tombstone, and the number
  /// of the newest record.
  private struct Comparison: BitwiseCopyable {
    let word: UInt64

    @inline(__always)
    init(_ entry: IndexEntry, with newest: Int) {
      word =
        entry.location.rawValue << 24 | (entry.flags.contains(.tombstone) ? 1 << 23 : 0)
        | UInt64(newest)
    }

    @inline(__always) var location: Location { Location(rawValue: word >> 24) }
    @inline(__always) var isTombstone: Bool { word & 1 << 23 != 0 }
    @inline(__always) var newest: Int { Int(word & 0x7F_FFFF) }
  }

  /// The maximum number of records in a stretch, and the maximum size of their keys in bytes, which
  /// bounds the memory. A `Comparison` can number more records.
  private static let memberLimit = 1 << 19
  private static let keyByteLimit = 32 << 20

  private let index: HashIndex
  private let table: SegmentTable
  private var members: [Member] = []
  private var keys: [UInt8] = []
  private var newest: [Newest] = []
  /// Where each shard's records begin in `newest`. The last number is the end of the last shard's
  /// records.
  private var starts: [Int] = []

  init(index: HashIndex, table: SegmentTable) {
    self.index = index
    self.table = table
  }

  var isEmpty: Bool { members.isEmpty }
  var isFull: Bool { members.count >= Self.memberLimit || keys.count >= Self.keyByteLimit }

  @inline(__always)
  mutating func add(
    _ header: RecordHeader, key: RawSpan, hash: UInt64, sequence: SequenceNumber,
    at location: Location
  ) {
    members.append(
      Member(header, hash: hash, sequence: sequence, at: location, keyStart: keys.count))
    keys.append(contentsOf: key)
  }

  /// Adds records of a segment with this first granule.
  mutating func add(_ members: [Member], keys: [UInt8], in granule: Int) {
    let start = self.keys.count
    self.members.append(contentsOf: members.lazy.map { $0.moved(to: granule, keysBy: start) })
    self.keys.append(contentsOf: keys)
  }

  /// Finds the newest record of each key in the stretch, and compares it with the index.
  ///
  /// - Parameter replacesDamaged: whether a record replaces the record with a damaged head at a
  ///   location. The key of the damaged record is unknown; the hashes are equal.
  /// - Throws: `corrupt` for any other damaged head; `system`.
  mutating func resolve(
    replacesDamaged: (Member, Location, Corruption) -> DamagedRecord
  ) throws(StoreError) {
    var comparisons: [Comparison] = []
    comparisons.reserveCapacity(members.count)
    members.sortByRadix { UInt64(HashIndex.shard(of: $0.hash)) }
    newest.removeAll(keepingCapacity: true)
    newest.reserveCapacity(members.count)
    starts.removeAll(keepingCapacity: true)
    var slots: [Int32] = []
    var rest = members[...]
    for shard in 0..<HashIndex.shardCount {
      starts.append(newest.count)
      let own = rest.prefix { HashIndex.shard(of: $0.hash) == shard }
      if own.isEmpty { continue }
      rest = rest[own.endIndex...]
      findNewest(of: own, &slots)
      let start = starts[shard]
      let newest = newest
      try index.find(newest.count - start, inShard: shard) {
        newest[start + $0].member.hash
      } _: { number, entry in
        comparisons.append(Comparison(entry, with: start + number))
      }
    }
    starts.append(newest.count)
    members.removeAll(keepingCapacity: true)
    comparisons.sortByRadix { $0.word >> 24 }
    try compare(comparisons, replacesDamaged: replacesDamaged)
  }

  /// How to treat a record that may replace one with a damaged head.
  enum DamagedRecord { case replaced, anotherKey, refused }

  /// - Parameter slots: the numbers of the newest records by their keys, with open addressing; -1
  ///   for none.
  private mutating func findNewest(of members: ArraySlice<Member>, _ slots: inout [Int32]) {
    let slotCount = 1 << (Int.bitWidth - (members.count * 2 - 1).leadingZeroBitCount)
    slots.removeAll(keepingCapacity: true)
    slots.append(contentsOf: repeatElement(-1, count: slotCount))
    let mask = UInt64(slotCount - 1)
    for member in members {
      var slot = Int(member.hash >> 24 & mask)
      while true {
        let other = Int(slots[slot])
        if other < 0 {
          slots[slot] = Int32(newest.count)
          newest.append(Newest(member: member))
          break
        }
        let known = newest[other].member
        if known.hash == member.hash, hasSameKey(known, member) {
          if known.sequence < member.sequence {
            newest[other].member = member
          }
          break
        }
        slot = (slot + 1) & Int(mask)
      }
    }
  }

  private func hasSameKey(_ one: Member, _ other: Member) -> Bool {
    keys.rawSpan.key(of: one).equals(keys.rawSpan.key(of: other))
  }

  private mutating func compare(
    _ comparisons: [Comparison],
    replacesDamaged: (Member, Location, Corruption) -> DamagedRecord
  ) throws(StoreError) {
    var reader = HeadReader()
    var damage: [(newest: Int, segment: Segment, isTombstone: Bool, location: Location)] = []
    // Move the array out, so that it is changed in place.
    var newest: [Newest] = []
    swap(&newest, &self.newest)
    let keys = keys
    var staged: [Staged] = []
    var stagedStart = 0
    try reader.read(count: comparisons.count) {
      comparisons[$0].location
    } segment: { [table] in
      table.segment(at: comparisons[$0].location)
    } group: { range in
      // The keys are scattered in memory. Prefetch all of them first, so that the waits overlap:
      // this takes a third of the time.
      staged.removeAll(keepingCapacity: true)
      stagedStart = range.lowerBound
      for number in range {
        staged.append(Staged(member: newest[comparisons[number].newest].member))
      }
      for number in staged.indices {
        staged[number].firstByte = keys[Int(staged[number].member.keyStart)]
      }
    } _: { number, segment, header, head in
      let comparison = comparisons[number]
      let own = staged[number - stagedStart]
      let member = own.member
      let key = head.extracting(header.keyRange)
      // A forged checkpoint may name a roll record, which has no key.
      guard header.keyByteCount > 0, key.load(UInt8.self, at: 0) == own.firstByte,
        keys.rawSpan.key(of: member).equals(key)
      else { return }
      if segment.sequence(of: header) >= member.sequence {
        newest[comparison.newest].isOld = true
      } else {
        newest[comparison.newest].known = comparison.location
        if !comparison.isTombstone { segment.usage.kill(byteCount: header.byteCount) }
      }
    } damaged: { (number, segment, error) throws(StoreError) in
      guard case .corrupt(var corruption) = error else { throw error }
      corruption = corruption.withoutDirectory
      let comparison = comparisons[number]
      let member = staged[number - stagedStart].member
      switch replacesDamaged(member, comparison.location, corruption) {
      case .replaced:
        damage.append(
          (comparison.newest, segment, comparison.isTombstone, comparison.location))
      case .anotherKey: break
      case .refused: throw .corrupt(corruption)
      }
    }
    for damage in damage where newest[damage.newest].known == .none && !newest[damage.newest].isOld
    {
      newest[damage.newest].known = damage.location
      if !damage.isTombstone { damage.segment.usage.kill(byteCount: 0) }
    }
    swap(&newest, &self.newest)
  }

  /// Adds the resolved records to the index, and empties the stretch.
  ///
  /// - Parameter tick: returns the last access of a record's entry, or `nil` to ignore the record.
  ///   Called with each record, and with whether the record replaces an entry.
  /// - Throws: `outOfMemory`.
  mutating func enter(_ tick: (Member, Bool) -> UInt64?) throws(StoreError) {
    for shard in 0..<HashIndex.shardCount where starts[shard] < starts[shard + 1] {
      let newest = newest[starts[shard]..<starts[shard + 1]]
      let start = newest.startIndex
      let newCount = newest.reduce(0) { $0 + ($1.known == .none && !$1.isOld ? 1 : 0) }
      try index.enter(newest.count, inShard: shard, newCount: newCount) { number in
        let own = newest[start + number]
        guard !own.isOld, let tick = tick(own.member, own.known != .none) else { return nil }
        return HashIndex.Change(
          IndexEntry(
            hash: HashIndex.stored(own.member.hash), location: own.member.location, tick: tick,
            flags: own.member.flags), replacing: own.known)
      }
    }
    newest.removeAll(keepingCapacity: true)
    keys.removeAll(keepingCapacity: true)
  }
}

extension RawSpan {
  @_lifetime(copy self)
  fileprivate func key(of member: ReplayStretch.Member) -> RawSpan {
    extracting(Int(member.keyStart)..<(Int(member.keyStart) + Int(member.keyByteCount)))
  }
}
