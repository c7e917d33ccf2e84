/// The values of each key, in the order of the writer.
///
/// A position says how far the writer had got: `2n` is after operation n, or during a gradual one.
/// `2n + 1` is after all of operation n.
package struct FollowedTimeline {
  /// The period during which a key had one value, or none.
  struct Period {
    /// The positions at which it may be found.
    var first: Int
    var last: Int
    /// The operation that wrote the value, or 0 if there is none.
    var number: Int
  }

  private(set) var periods: [[Period]]

  package init() {
    periods = Array(
      repeating: [Period(first: 0, last: .max, number: 0)], count: FollowedHistory.keyCount)
  }

  /// - Parameter outcome: the result of the operation.
  package mutating func append(
    _ number: Int, of history: FollowedHistory, _ outcome: FollowedHistory.Outcome
  ) {
    guard outcome.isApplied else { return }
    switch history.operation(number) {
    case .put(let key): set(key, to: number, by: number)
    case .remove(let key): set(key, to: 0, by: number)
    case .batch(let changes):
      for change in changes { set(change.key, to: change.isRemoval ? 0 : number, by: number) }
    case .removeAll: empty(by: number)
    case .trim: for key in outcome.removed { set(key, to: 0, by: number, isGradual: true) }
    case .setLifetime, .compact, .checkpoint, .sync, .reopen: break
    }
  }

  /// Records that another, empty store replaces this one.
  package mutating func empty(by number: Int) {
    for key in periods.indices { set(key, to: 0, by: number) }
  }

  private mutating func set(_ key: Int, to value: Int, by number: Int, isGradual: Bool = false) {
    let last = periods[key].count - 1
    periods[key][last].last = isGradual ? 2 * number : 2 * number - 1
    periods[key].append(Period(first: 2 * number, last: .max, number: value))
  }

  /// The operation that wrote the last value of a key, or 0 if it has none.
  package func last(_ key: Int) -> Int { periods[key][periods[key].count - 1].number }
}

/// What a follower did, as it recorded it.
package struct FollowedEvent: Sendable, Equatable {
  package enum Kind: UInt64, Sendable {
    /// A key was read: alone, or in a view.
    case read
    /// From here on, all reads are of one state, until the next event that is not a read.
    case view
    /// The end of a view.
    case endOfView
    /// Later reads find everything that was done before.
    case caughtUp
    /// The store was opened or reopened, perhaps by another process.
    case opened
    /// A call reported that published data is gone.
    case outdated
    /// The last event.
    case end
  }

  package var kind: Kind
  package var key: Int
  /// The last operation that was acknowledged before the read, or the view, began. 0: the follower
  /// need not see any.
  package var done: Int
  /// The last operation that had begun when the event was recorded.
  package var begun: Int
  /// The operation that wrote the value, or 0 if there was none.
  package var number: Int
  package var version: UInt64

  package init(
    _ kind: Kind, key: Int = 0, done: Int = 0, begun: Int = 0, number: Int = 0, version: UInt64 = 0
  ) {
    self.kind = kind
    self.key = key
    self.done = done
    self.begun = begun
    self.number = number
    self.version = version
  }
}

/// Checks that the order of the writer explains what a follower has seen, in the follower's order.
///
/// Each read, or view, gets the first position that explains it and does not come before those of
/// earlier reads. If that leads to a contradiction, so does every other choice.
package struct FollowedCheck {
  private let timeline: FollowedTimeline
  /// The operation by which another store replaced the first one, if there is one.
  private let replacement: Int?
  /// A lower bound on the writer's progress.
  private var position = 0
  /// The period that was last seen, by key.
  private var places: [Int]
  /// The last value seen for each key, and its version.
  private var versions: [Int: (number: Int, version: UInt64)] = [:]
  private var group: [FollowedEvent] = []
  private var viewBound: Int?
  /// Whether the follower still follows the store that was replaced.
  private var isBehind: Behind = .yes
  package private(set) var tally = Tally()

  private enum Behind { case yes, perhaps, no }

  /// - Parameter replacement: the operation by which another store replaced the first one.
  package init(_ timeline: FollowedTimeline, replacement: Int? = nil) {
    self.timeline = timeline
    self.replacement = replacement
    places = Array(repeating: 0, count: timeline.periods.count)
    if replacement == nil { isBehind = .no }
  }

  package mutating func check(_ events: [FollowedEvent]) throws {
    for (index, event) in events.enumerated() {
      do { try check(event) } catch { throw FuzzFailure("event \(index), \(event): \(error)") }
    }
  }

  private mutating func check(_ event: FollowedEvent) throws {
    if event.kind == .read {
      if viewBound != nil { return group.append(event) }
      try settle([event], least: bound(event.done))
      tally["reads"] += 1
      return
    }
    if let viewBound {
      try settle(group, least: viewBound)
      tally["views"] += 1
    }
    (viewBound, group) = (nil, [])
    switch event.kind {
    case .read, .endOfView: break
    case .view: viewBound = bound(event.done)
    case .caughtUp: position = max(position, bound(event.done))
    case .opened:
      tally["opens"] += 1
      guard let replacement, isBehind != .no else { break }
      if event.done >= replacement {
        leave(replacement)
      } else if event.begun >= replacement {
        isBehind = .perhaps
      }
    case .outdated:
      guard let replacement, isBehind != .no else {
        throw FuzzFailure("it reports that data is gone, but none is")
      }
      leave(replacement)
      tally["outdated"] += 1
    case .end:
      if isBehind == .yes { throw FuzzFailure("it never noticed the other store") }
    }
  }

  private mutating func leave(_ replacement: Int) {
    isBehind = .no
    versions = [:]
    position = max(position, 2 * replacement)
  }

  private func bound(_ done: Int) -> Int {
    if let replacement, isBehind != .no { return 2 * min(done, replacement - 1) + 1 }
    return done == 0 ? 0 : 2 * done + 1
  }

  /// Finds the first position that explains reads which were made together.
  private mutating func settle(_ reads: [FollowedEvent], least: Int) throws {
    var found = max(position, least)
    var hasMoved = true
    while hasMoved {
      hasMoved = false
      for read in reads {
        let periods = timeline.periods[read.key]
        var place = places[read.key]
        while place < periods.count,
          periods[place].number != read.number || periods[place].last < found
        {
          place += 1
        }
        guard place < periods.count else { throw contradiction(read, found) }
        places[read.key] = place
        if periods[place].first > found {
          found = periods[place].first
          hasMoved = true
        }
        if periods[place].first > 2 * read.begun + 1 {
          throw FuzzFailure("\(read) was found before it was written")
        }
      }
    }
    if let replacement, found >= 2 * replacement {
      if isBehind == .yes { throw FuzzFailure("it finds the other store unreported") }
      if isBehind == .perhaps { leave(replacement) }
    }
    position = found
    try reads.forEach { try checkVersion($0) }
  }

  private func contradiction(_ read: FollowedEvent, _ position: Int) -> FuzzFailure {
    let periods = timeline.periods[read.key]
    let known = periods.contains { $0.number == read.number }
    let there = periods.last { $0.first <= position }.map { "\($0)" } ?? "nothing"
    return FuzzFailure(
      "\(FollowedHistory.key(read.key)) holds \(read.number) of version \(read.version)"
        + (known ? "" : ", which is not in the log")
        + ", and the writer was at \(position) at least, where it holds \(there)")
  }

  private mutating func checkVersion(_ read: FollowedEvent) throws {
    if read.number == 0 { return }
    if let last = versions[read.key] {
      let isRight =
        read.number == last.number ? read.version >= last.version : read.version > last.version
      if !isRight { throw FuzzFailure("\(read) after version \(last.version)") }
    }
    versions[read.key] = (read.number, read.version)
  }
}
