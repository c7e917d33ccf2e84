/// Tries all cuts in which only some decisions are free: all combinations of these decisions, while
/// the others follow a rule.
///
/// A cut makes its decisions in a fixed order: which names exist, then for each file its sectors
/// and its length. Sectors are not torn, and unwritten space is empty.
struct EnumeratedCut: CutChooser {
  /// What is chosen for decisions that are not free.
  enum Rest: CaseIterable {
    case oldest, newest
    /// Alternately, beginning with either.
    case oldestAndNewest, newestAndOldest

    /// The rules that the search combines with free decisions.
    static let uniform: [Rest] = [.oldest, .newest]

    fileprivate func choice(_ number: Int, of count: Int) -> Int {
      switch self {
      case .oldest: 0
      case .newest: count - 1
      case .oldestAndNewest: number.isMultiple(of: 2) ? 0 : count - 1
      case .newestAndOldest: number.isMultiple(of: 2) ? count - 1 : 0
      }
    }
  }

  private let free: [Int]
  private let rest: Rest
  /// The values of the free decisions in this cut.
  private var chosen: [Int]
  /// How many choices each free decision had when it was last made; 1 if it was not made.
  private var freeCounts: [Int]
  /// How many decisions this cut has made so far.
  private(set) var decisionCount = 0

  /// - Parameter free: the numbers of the free decisions, in ascending order.
  init(free: [Int], rest: Rest) {
    self.free = free
    self.rest = rest
    chosen = [Int](repeating: 0, count: free.count)
    freeCounts = [Int](repeating: 1, count: free.count)
  }

  /// Advances to the next cut.
  ///
  /// - Returns: `false` if that was the last.
  mutating func advance() -> Bool {
    decisionCount = 0
    // Like an odometer, with the last decision the fastest. Earlier decisions may change how many
    // choices come after them, so the counts are those of the cut that was just made.
    for index in free.indices.reversed() {
      if chosen[index] + 1 < freeCounts[index] {
        chosen[index] += 1
        for later in (index + 1)..<free.endIndex { (chosen[later], freeCounts[later]) = (0, 1) }
        return true
      }
    }
    return false
  }

  private mutating func choose(_ count: Int) -> Int {
    defer { decisionCount += 1 }
    guard let index = free.firstIndex(of: decisionCount) else {
      return rest.choice(decisionCount, of: count)
    }
    freeCounts[index] = count
    return min(chosen[index], count - 1)
  }

  mutating func version(of count: Int) -> Int { choose(count) }
  mutating func length(of count: Int) -> Int { choose(count) }
  mutating func persistsName() -> Bool { choose(2) == 1 }
  mutating func tearsSector() -> Bool { false }
  mutating func keepsOldWord() -> Bool { false }
  mutating func fillsUnwritten() -> Bool { false }
  mutating func junk(of count: Int) -> Int { 0 }
  mutating func isHostile() -> Bool { false }
}

extension EnumeratedCut: CustomStringConvertible {
  var description: String { "decisions \(free) as \(chosen), the rest \(rest)" }
}
