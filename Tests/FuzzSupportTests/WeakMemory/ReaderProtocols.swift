import FuzzSupport

/// Shared hits of the caches, clocks, and what followers read.
extension WeakMemoryProtocol {
  private typealias Step = MemoryModel.Step

  // MARK: Shared hits

  private static let (shared, entered, stripe) = (0, 1, 2)
  private static let content = 0

  static let sharedHits = WeakMemoryProtocol(
    "shared hits",
    [
      "enter": Transcription(
        readers, "func enter()",
        operations: [
          "load words[0] relaxed", "load words[1] sequential", "bitwiseOr words[1] sequential",
          "wrappingAdd words[stripe] sequential", "load words[0] sequential",
          "wrappingSubtract words[stripe] release",
        ]),
      "leave": Transcription(
        readers, "func leave(", operations: ["wrappingAdd words[stripe] release"]),
      "unlock": Transcription(
        readers, "func unlock(",
        operations: ["load words[Self.readCount] relaxed", "store words[0] sequential"]),
      "end": Transcription(
        readers, "func endSharing(",
        operations: [
          "load words[0] relaxed", "load words[Self.readCount] relaxed",
          "store words[Self.readCount] relaxed", "store words[0] sequential",
          "load words[1] sequential", "load words[stripe] sequential",
        ]),
      // All that a reader changes inside; the programs have a read instead.
      "note": Transcription(
        "Sources/Cairn/Memory/SharedHit.swift", "func noteSharedHit(",
        operations: [
          "load mark relaxed", "compareExchange mark relaxed", "load accessed relaxed",
          "max accessed relaxed",
        ]),
    ],
    spare: [
      "enter 1: load words[1] sequential → acquire":
        "an acquire load is in the order too, by what it sees, and costs the same",
      "enter 5: wrappingSubtract words[stripe] release → relaxed":
        "the reader has read nothing; the update continues the release sequence",
      "unlock 1: store words[0] sequential → release":
        "a reader that misses it takes the mutex",
    ],
    [{ sharedAgain($0) }, { sharedStripe($0) }])

  private static let readers = "Sources/Cairn/Platform/SharedReaders.swift"

  private static func sharedModel(_ threads: [Step]...) -> MemoryModel {
    MemoryModel(
      words: ["shared": 1, "entered": 0, "stripe": 0], data: ["content"], registerCount: 1,
      threads: threads)
  }

  private static func hit(_ steps: Steps) -> [Step] {
    [
      .load(shared, steps("enter", 0), into: 0),
      .jump("locked") { $0[0] == 0 },
      .load(entered, steps("enter", 1), into: 0),
      .jump("known") { $0[0] != 0 },
      .update(entered, steps("enter", 2), failing: nil, into: 0) { _, _ in 1 },
      .label("known"),
      .update(stripe, steps("enter", 3), failing: nil, into: 0) { old, _ in old + 1 },
      .load(shared, steps("enter", 4), into: 0),
      .jump("inside") { $0[0] != 0 },
      .update(stripe, steps("enter", 5), failing: nil, into: 0) { old, _ in old - 1 },
      .end,
      .label("inside"),
      .use(content, .read),
      .update(stripe, steps("leave", 0), failing: nil, into: 0) { old, _ in old - 1 },
      .label("locked"),
    ]
  }

  /// The only thread that takes the mutex.
  private static func change(_ steps: Steps, sharesAgain: Bool, _ name: String = "") -> [Step] {
    [
      .load(shared, steps("end", 0), into: 0),
      .jump("alone" + name) { $0[0] == 0 },
      .store(0, in: shared, steps("end", 3)),
      .load(entered, steps("end", 4), into: 0),
      .jump("alone" + name) { $0[0] == 0 },
      .await(stripe, steps("end", 5), into: 0) { $0 == 0 },
      .label("alone" + name),
      .use(content, .write),
      .set(0, 0),
    ] + (sharesAgain ? [.store(1, in: shared, steps("unlock", 1))] : [])
  }

  /// Reads are shared again between two changes.
  private static func sharedAgain(_ steps: Steps) -> MemoryModel {
    sharedModel(
      change(steps, sharesAgain: true, "first") + change(steps, sharesAgain: false, "second"),
      hit(steps))
  }

  private static func sharedStripe(_ steps: Steps) -> MemoryModel {
    sharedModel(change(steps, sharesAgain: false), hit(steps), hit(steps))
  }

  // MARK: Clocks

  private static let (version, readTick, readTime) = (0, 1, 2)
  /// Registers.
  private static let (before, tick, time, after) = (0, 1, 2, 3)

  static let storeClock = WeakMemoryProtocol(
    "sequence lock of the clock",
    [
      "now": Transcription(
        clock, "private func systemTime()",
        operations: [
          "load version acquire", "load readTick relaxed", "load readTime relaxed",
          "atomicMemoryFence acquire", "load version relaxed",
        ]),
      "keep": Transcription(
        clock, "private func readSystemTime(",
        operations: [
          "compareExchange version acquireRelease", "atomicMemoryFence release",
          "store readTime relaxed", "store readTick relaxed", "store version release",
        ]),
    ],
    spare: [
      "keep 0: compareExchange version acquireRelease → acquire": "a release fence follows",
      "keep 0: compareExchange version acquireRelease → release": "the version was acquired before",
      "keep 0: compareExchange version acquireRelease → relaxed": "for both reasons",
    ],
    [
      { steps in
        clockModel(keep(steps, 1) + keep(steps, 2, "again"), look(steps, 2))
      },
      { steps in clockModel(keep(steps, 1), keep(steps, 2), look(steps, 2)) },
    ])

  private static let clock = "Sources/CairnStore/Platform/StoreClock.swift"

  private static func clockModel(_ threads: [Step]...) -> MemoryModel {
    MemoryModel(
      words: ["version": 0, "tick": 0, "time": 0], registerCount: 4, threads: threads)
  }

  /// A thread whose clock shows a tick reads the time, which is 10 times the tick here, and keeps it.
  private static func keep(_ steps: Steps, _ tick: Int, _ name: String = "") -> [Step] {
    [
      .load(version, steps("now", 0), into: before),
      .jump("busy" + name) { $0[before] % 2 == 1 },
      .update(
        version, steps("keep", 0), failing: steps.failing("keep", 0), into: after
      ) { old, registers in old == registers[before] ? old + 1 : nil },
      .jump("busy" + name) { $0[after] != $0[before] },
      .fence(steps("keep", 1)),
      .store(.init(integerLiteral: 10 * tick), in: readTime, steps("keep", 2)),
      .store(.init(integerLiteral: tick), in: readTick, steps("keep", 3)),
      .store(.init { $0[before] + 2 }, in: version, steps("keep", 4)),
      .label("busy" + name),
    ]
  }

  private static func look(_ steps: Steps, _ now: Int) -> [Step] {
    [
      .load(version, steps("now", 0), into: before),
      .jump("other") { $0[before] % 2 == 1 },
      .load(readTick, steps("now", 1), into: tick),
      .jump("other") { $0[tick] != now },
      .load(readTime, steps("now", 2), into: time),
      .fence(steps("now", 3)),
      .load(version, steps("now", 4), into: after),
      .jump("other") { $0[after] != $0[before] },
      .require("the time is that of the tick") { $0[time] == 10 * now },
      .label("other"),
    ]
  }

  /// The clock of accesses: an access after a thread has seen a time gets a tick of its sample.
  static let recencyClock = WeakMemoryProtocol(
    "clock of accesses",
    [
      "needs": Transcription(
        recency, "package func needs(", operations: ["load lastTime acquire"]),
      "note": Transcription(
        recency, "package func note(",
        operations: [
          "load lastTime relaxed", "wrappingAdd tick relaxed", "store sampleTick relaxed",
          "store freshTick relaxed", "store lastTime release",
        ]),
      "read": Transcription(
        recency, "package func tickOfRead(",
        operations: ["load tick relaxed", "load sampleTick relaxed", "load freshTick relaxed"]),
    ],
    [
      { steps in
        let (lastTime, tick, sampleTick, freshTick) = (0, 1, 2, 3)
        return MemoryModel(
          words: ["last time": 1, "tick": 1, "sample tick": 1, "fresh tick": 1], registerCount: 4,
          threads: [
            [
              .load(lastTime, steps("note", 0), into: 0),
              .update(tick, steps("note", 1), failing: nil, into: 0) { old, _ in old + 1 },
              .store(2, in: sampleTick, steps("note", 2)),
              .store(2, in: freshTick, steps("note", 3)),
              .store(2, in: lastTime, steps("note", 4)),
            ],
            [
              .load(lastTime, steps("needs", 0), into: 0),
              .load(tick, steps("read", 0), into: 1),
              .load(sampleTick, steps("read", 1), into: 2),
              .load(freshTick, steps("read", 2), into: 3),
              .jump("old") { $0[0] == 1 },
              .require("the ticks are of the sample") { $0[1] >= 2 && $0[2] == 2 && $0[3] == 2 },
              .label("old"),
            ],
          ])
      }
    ])

  private static let recency = "Sources/CairnStore/Index/RecencyClock.swift"
}
