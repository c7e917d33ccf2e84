import Cairn
import CairnStore

// The passing of time, and the time limits that end with it.
extension LoadModelRun {
  /// Lets whole seconds pass, with a stop at each limit.
  mutating func pass() async throws {
    let seconds = random.below(8)
    note("\(seconds) s pass")
    let end = model.now + 1000 * Int64(seconds)
    repeat {
      let next = limits.map(\.end).filter { $0 > model.now }.min() ?? end
      try await advance(to: min(next, end))
    } while model.now < end
  }

  private var limits: [Limit] {
    loads.flatMap { ([$0.limit] + $0.waiters.map(\.softLimit)).compactMap { $0 } }
  }

  private mutating func advance(to end: Int64) async throws {
    scene.advance(by: .milliseconds(end - model.now))
    model.now = scene.clock.now().millisecondsSinceEpoch
    // Maintenance may remove a value that is too old for all policies. No call shows whether it
    // has.
    model.removeExpired(before: model.now - LoadModelScene.retention)
    try await endWaits()
  }

  /// Applies the time limits that have passed. Calls whose soft limits have passed continue after
  /// that.
  private mutating func endWaits() async throws {
    var timedOut: [Load] = []
    var left: [(key: Int, waiter: Waiter)] = []
    for limit in limits where limit.end <= model.now {
      for index in loads.indices {
        if loads[index].limit?.number == limit.number {
          if !loads[index].isOutdated {
            model.noteFailure(loads[index].key, loads[index].policy, number)
          }
          loads[index].isOutdated = true
          loads[index].limit = nil
          timedOut.append(loads[index])
          loads[index].waiters = []
        }
        let isLeaving = { (waiter: Waiter) in waiter.softLimit?.number == limit.number }
        left += loads[index].waiters.filter(isLeaving).map { (loads[index].key, $0) }
        loads[index].waiters.removeAll(where: isLeaving)
      }
    }
    for load in timedOut {
      try await tell(load, nil, timedOut: true)
      tally["timed out"] += load.waiters.count
    }
    tally["left by soft limit"] += left.count
    // At most one caller reaches its soft limit at a time.
    for (key, var waiter) in left {
      if let stale = model.stale(key, waiter.policy) {
        try await expect(waiter, stale, "the result of a caller that stopped waiting")
      } else if case .answered(let answer, _) = model.outcome(key, waiter.policy) {
        try await expect(waiter, answer, "the result of a caller that asked again")
      } else {
        callers.runAll()
        try expect(waiter.result.answer.withLock { $0 }, nil, "the answer during a new wait")
        waiter.softLimit = nil
        if let index = underWay(key) {
          loads[index].waiters.append(waiter)
        } else {
          try await begin(key, waiter.policy, waiter)
        }
        tally["waits after a soft limit"] += 1
      }
    }
  }
}
