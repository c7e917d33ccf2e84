import CairnLibC
import Synchronization

/// How long a cache line takes from one processor to another and back. The longer it takes, the
/// less two threads gain that write to shared memory. On a virtual machine, it differs by the hour.
enum LineRoundTrip {
  private final class Line: Sendable {
    let turn = Atomic(0)
  }

  /// The median of several rounds, in nanoseconds, or `nil` if there is only one processor.
  static func nanoseconds(roundCount: Int = 9, tripCount: Int = 20_000) throws -> Double? {
    if sysconf(Int32(_SC_NPROCESSORS_ONLN)) < 2 { return nil }
    var times: [Double] = []
    for _ in 0..<roundCount {
      let line = Line()
      let ends = try ThreadTeam.run(2) { own in
        let begin = monotonicNanoseconds()
        for trip in 0..<tripCount {
          var spinCount = 0
          while line.turn.load(ordering: .acquiring) != 2 * trip + own {
            spinCount += 1
            // The other thread may wait for this processor.
            if spinCount % 10_000 == 0 { sched_yield() }
          }
          line.turn.store(2 * trip + own + 1, ordering: .releasing)
        }
        return Double(monotonicNanoseconds() - begin) / Double(tripCount)
      }
      times.append(ends[1])
    }
    return times.sorted()[roundCount / 2]
  }
}
