/// The deadlines of a shard's entries, by their slots: 4 bytes each.
///
///     31                               1 0
///     ┌─────────────────────────────────┬─┐
///     │ moment + 1 (31)                 │i│   i: inexact; all zero: no deadline
///     └─────────────────────────────────┴─┘
///
/// A moment is the number of 16 ms units since the table's origin. Words are stored in chunks for
/// 64 slots; a chunk without deadlines takes no memory. Each chunk has a lower bound of its words,
/// and the table has one for all words. A search for due entries skips chunks whose bound is too
/// high.
struct DeadlineTable: ~Copyable {
  private static let chunkLength = 64
  private static let unit: Int64 = 16
  /// Later times get this moment, about a year after the origin, and are checked then.
  private static let lastMoment: UInt32 = (1 << 31) - 2
  /// The origin moves once the current time is this many units after it.
  private static let rebaseDistance: Int64 = 1 << 30

  /// In milliseconds since the Unix epoch.
  private var origin: Int64
  /// For each run of 64 slots, the number of its chunk, counted from 1, or 0 for none.
  private var numbers = FlatBuffer<UInt32>()
  private var words = FlatBuffer<UInt32>()
  /// For each chunk, a lower bound of its words.
  private var lowest = FlatBuffer<UInt32>()
  private var chunkCount = 0
  private var lowestOfAll = UInt32.max
  /// The latest time at which reading a record and its last access gave an exact deadline.
  var settledTime = Int64.min
  private let budget: MemoryBudget
  /// Whether a deadline was omitted for lack of memory.
  private(set) var isIncomplete = false

  init(origin: Int64, budget: MemoryBudget = .unlimited) {
    self.origin = origin
    self.budget = budget
  }

  /// An empty table with the same origin.
  init(like other: borrowing DeadlineTable) {
    origin = other.origin
    settledTime = other.settledTime
    budget = other.budget
  }

  /// An empty table for this many slots, with room for the contents of another one.
  ///
  /// - Throws: `outOfMemory`.
  init(like other: borrowing DeadlineTable, slotCount: Int) throws(StoreError) {
    self.init(like: other)
    isIncomplete = other.isIncomplete
    if other.isEmpty { return }
    numbers = try FlatBuffer(zeroCount: slotCount / Self.chunkLength + 1, budget: budget)
    let count = max(1, other.chunkCount * numbers.count / other.numbers.count)
    words = try FlatBuffer(zeroCount: count * Self.chunkLength, budget: budget)
    lowest = try FlatBuffer(zeroCount: count, budget: budget)
  }

  var isEmpty: Bool { chunkCount == 0 }
  var byteCount: Int { numbers.byteCount + words.byteCount + lowest.byteCount }

  /// The moment of a time, or the nearest representable one.
  private func moment(_ time: Int64) -> UInt32 {
    let distance = time.subtracting(clamped: origin)
    return UInt32(min(max(0, distance / Self.unit), Int64(Self.lastMoment)))
  }

  private func word(_ deadline: Deadline) -> UInt32 {
    let moment = moment(deadline.time)
    let isExact = deadline.isExact && moment < Self.lastMoment
    return (moment + 1) << 1 | (isExact ? 0 : 1)
  }

  /// The word of a slot, or 0 if the slot has no deadline.
  private func word(at slot: Int) -> UInt32 {
    if isEmpty { return 0 }
    let number = Int(numbers[slot / Self.chunkLength])
    return number == 0 ? 0 : words[(number - 1) * Self.chunkLength + slot % Self.chunkLength]
  }

  func hasDeadline(at slot: Int) -> Bool { word(at: slot) != 0 }

  /// The time before which the entry does not expire; `nil` if the slot has no deadline.
  func time(at slot: Int) -> Int64? {
    let word = word(at: slot)
    return word == 0 ? nil : origin + Int64((word >> 1) - 1) * Self.unit
  }

  /// Sets the deadline of a slot. If memory runs out, the slot has no deadline afterwards, and the
  /// table is incomplete.
  ///
  /// - Parameter slotCount: the number of slots in the table of entries.
  mutating func set(_ deadline: Deadline, at slot: Int, slotCount: Int) {
    if isEmpty {
      do {
        numbers = try FlatBuffer(zeroCount: slotCount / Self.chunkLength + 1, budget: budget)
      } catch {
        isIncomplete = true
        return
      }
    }
    set(word(deadline), at: slot)
  }

  /// Call before setting missing deadlines.
  mutating func beginCompletion() { isIncomplete = false }

  @inline(__always)
  mutating func remove(at slot: Int) { if !isEmpty { set(0, at: slot) } }

  /// Makes the deadline of a slot, if any, inexact. The entry's record and last access then decide.
  mutating func makeInexact(at slot: Int) {
    let word = word(at: slot)
    if word != 0 { set(word | 1, at: slot) }
  }

  private mutating func set(_ word: UInt32, at slot: Int) {
    let run = slot / Self.chunkLength
    var number = Int(numbers[run])
    if number == 0 {
      if word == 0 { return }
      do { try addChunk() } catch {
        isIncomplete = true
        return
      }
      number = chunkCount
      numbers[run] = UInt32(number)
    }
    words[(number - 1) * Self.chunkLength + slot % Self.chunkLength] = word
    if word == 0 { return }
    if word < lowest[number - 1] { lowest[number - 1] = word }
    if word < lowestOfAll { lowestOfAll = word }
  }

  private mutating func addChunk() throws(StoreError) {
    if chunkCount == lowest.count {
      let count = min(chunkCount + chunkCount / 8 + 1, numbers.count)
      let newWords = try FlatBuffer<UInt32>(zeroCount: count * Self.chunkLength, budget: budget)
      let newLowest = try FlatBuffer<UInt32>(zeroCount: count, budget: budget)
      for index in 0..<words.count { newWords[index] = words[index] }
      for index in 0..<lowest.count { newLowest[index] = lowest[index] }
      words = newWords
      lowest = newLowest
    }
    lowest[chunkCount] = .max
    chunkCount += 1
  }

  /// Moves the deadlines of entries that have moved by one slot.
  @inline(__always)
  mutating func move(from source: Int, to target: Int, length: Int) {
    if isEmpty || length == 0 { return }
    moveWords(from: source, to: target, length: length)
  }

  @inline(never)
  private mutating func moveWords(from source: Int, to target: Int, length: Int) {
    let run = min(source, target) / Self.chunkLength
    if (max(source, target) + length - 1) / Self.chunkLength == run {
      let number = Int(numbers[run])
      if number == 0 { return }
      let start = (number - 1 - run) * Self.chunkLength
      words.move(from: start + source, to: start + target, length: length)
    } else if source < target {
      for index in (0..<length).reversed() { set(word(at: source + index), at: target + index) }
    } else {
      for index in 0..<length { set(word(at: source + index), at: target + index) }
    }
  }

  /// Copies the deadline in a slot of a table with the same origin.
  @inline(__always)
  mutating func take(from other: borrowing DeadlineTable, slot: Int, to target: Int) {
    let word = other.word(at: slot)
    if word != 0 { set(word, at: target) }
  }

  /// Records an access to the entry in a slot. If another thread has found that the entry was idle
  /// for too long, its deadline becomes inexact.
  mutating func noteAccess(at slot: Int) {
    if settledTime > .min, isDue(at: slot, by: settledTime) { makeInexact(at: slot) }
  }

  /// Whether the deadline in a slot has passed.
  func isDue(at slot: Int, by time: Int64) -> Bool {
    let word = word(at: slot)
    return word != 0 && word <= highestWord(by: time)
  }

  /// The highest word whose deadline has come.
  private func highestWord(by time: Int64) -> UInt32 { (moment(time) + 1) << 1 | 1 }

  /// Call before `forEachDue`.
  ///
  /// - Parameter time: the present.
  mutating func prepare(for time: Int64) {
    let (distance, overflow) = time.subtractingReportingOverflow(origin)
    // The clock may have been ahead when the origin moved.
    if !overflow, distance < 0 || distance / Self.unit >= Self.rebaseDistance { rebase(to: time) }
  }

  /// Calls `body` with each slot whose deadline has come.
  ///
  /// - Parameter visitsPassed: whether to include entries that have certainly expired.
  /// - Returns: the number of entries that have certainly expired, and the value to pass to
  ///   `noteLowest`.
  /// - Complexity: O(slots found), and a read of 4 bytes per 64 slots if the table has any
  ///   deadline.
  @inline(__always)
  func forEachDue(
    by time: Int64, visitsPassed: Bool, _ body: (Int, Deadline.State) -> Void
  ) -> (passedCount: Int, lowest: UInt32) {
    let highest = highestWord(by: time)
    if lowestOfAll > highest { return (0, lowestOfAll) }
    var passedCount = 0
    var lowestLeft = UInt32.max
    for run in 0..<numbers.count {
      let number = Int(numbers[run])
      if number == 0 { continue }
      if lowest[number - 1] <= highest {
        let chunk = words.span(from: (number - 1) * Self.chunkLength, count: Self.chunkLength)
        let found = Self.look(chunk, highest)
        passedCount += found.passedCount
        lowest[number - 1] = found.lowest
        if found.dueCount > (visitsPassed ? 0 : found.passedCount) {
          for index in chunk.indices {
            let word = chunk[index]
            if word == 0 || word > highest { continue }
            let state: Deadline.State =
              word & 1 != 0 ? .inexact : word < highest - 1 ? .passed : .passing
            if state == .passed && !visitsPassed { continue }
            body(run * Self.chunkLength + index, state)
          }
        }
      }
      lowestLeft = min(lowestLeft, lowest[number - 1])
    }
    return (passedCount, lowestLeft)
  }

  /// Counts the due slots of a chunk. The loop has no branches, so one instruction checks many
  /// words.
  private static func look(
    _ chunk: Span<UInt32>, _ highest: UInt32
  ) -> (lowest: UInt32, dueCount: Int, passedCount: Int) {
    var lowest = UInt32.max
    var (dueCount, passedCount): (UInt32, UInt32) = (0, 0)
    let passedEnd = highest - 2
    for index in chunk.indices {
      // Slots without a deadline get the highest value.
      let word = chunk[index] &- 1
      lowest = min(lowest, word)
      dueCount &+= word < highest ? 1 : 0
      // Exact words are even, so they are odd after the subtraction.
      passedCount &+= word & (word < passedEnd ? 1 : 0)
    }
    return (lowest == .max ? .max : lowest + 1, Int(dueCount), Int(passedCount))
  }

  mutating func noteLowest(_ word: UInt32) { lowestOfAll = word }

  /// Moves the origin to a time. Deadlines before either origin become inexact.
  private mutating func rebase(to time: Int64) {
    // Rounded down, so that the origin is not after the time.
    let shift = (time - origin) >> Self.unit.trailingZeroBitCount
    origin += shift * Self.unit
    lowestOfAll = .max
    for chunk in 0..<chunkCount {
      lowest[chunk] = .max
      for index in (chunk * Self.chunkLength)..<((chunk + 1) * Self.chunkLength) {
        let word = words[index]
        if word == 0 { continue }
        let old = Int64(word >> 1) - 1
        // The first moment may stand for earlier times, and remains the first.
        let moment = old == 0 ? -1 : old - shift
        let bounded = min(max(0, moment), Int64(Self.lastMoment))
        words[index] = UInt32(bounded + 1) << 1 | (moment == bounded ? word & 1 : 1)
        lowest[chunk] = min(lowest[chunk], words[index])
      }
      lowestOfAll = min(lowestOfAll, lowest[chunk])
    }
  }
}

/// Holds the deadlines of a shard in separate memory, because most shards have none.
final class DeadlineBox {
  var table: DeadlineTable

  init(_ table: consuming DeadlineTable) { self.table = table }
}
