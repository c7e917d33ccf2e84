import FuzzSupport

/// The list of the slots in which threads show their pins, and slots that pass to other threads.
extension WeakMemoryProtocol {
  private typealias Step = MemoryModel.Step

  private static let source = "Sources/CCairn/Pins.c"
  private static let (slots, nextOfFirst, nextOfSecond, isTaken, epoch, hazard) = (0, 1, 2, 3, 4, 5)
  /// Registers.
  private static let (next, seen) = (0, 1)
  /// The memory of two slots, a field that only the owner of a slot uses, and an object.
  private static let (first, second, depth, object) = (0, 1, 2, 3)

  static let pinSlots = WeakMemoryProtocol(
    "slots of pins",
    [
      "clear": Transcription(
        source, "static void clear(",
        operations: [
          "store_n slot->epoch release", "store_n slot->hazard release",
          "store_n slot->is_taken release",
        ]),
      "take": Transcription(
        source, "*cairn_take_pin_slot(void)",
        operations: [
          "load_n slots acquire", "compare_exchange_n slot->is_taken acquire relaxed",
          "load_n slots acquire", "fetch_add count relaxed",
          "compare_exchange_n slots acquireRelease acquire", "store_n slot->is_taken release",
        ]),
    ],
    spare: [
      "take 2: load_n slots acquire → relaxed":
        "the thread does not follow the address; whoever does acquires it in the list",
      "take 4: compare_exchange_n slots acquireRelease acquire → release": "for the same reason",
      "take 4: compare_exchange_n slots acquireRelease acquire → failing relaxed":
        "for the same reason",
    ],
    [
      { made($0) }, { passedOn($0) }, { ended($0, epoch, "clear", 0) },
      { ended($0, hazard, "clear", 1) },
    ])

  private static func slotModel(_ threads: [Step]...) -> MemoryModel {
    MemoryModel(
      words: [
        "slots": 0, "next of first": 0, "next of second": 0, "is taken": 1, "epoch": 1, "hazard": 1,
      ], data: ["first slot", "second slot", "depth", "object"], registerCount: 2,
      threads: threads)
  }

  /// Goes through the list and reads what a slot had from its beginning.
  private static func walk(_ order: MemoryModel.Order) -> [Step] {
    [
      .load(slots, order, into: seen),
      .label("walk"),
      .jump("end") { $0[seen] == 0 },
      .jump("second") { $0[seen] == 2 },
      .use(first, .read),
      .load(nextOfFirst, .relaxed, into: seen),
      .jump("walk") { _ in true },
      .label("second"),
      .use(second, .read),
      .load(nextOfSecond, .relaxed, into: seen),
      .jump("walk") { _ in true },
      .label("end"),
    ]
  }

  /// Two threads each make a slot; both are in use, so that neither takes the other's. A third
  /// thread goes through the list.
  private static func made(_ steps: Steps) -> MemoryModel {
    func make(_ slot: Int, _ nextOfSlot: Int) -> [Step] {
      walk(steps("take", 0)) + [
        .use(slot, .write),
        .load(slots, steps("take", 2), into: next),
        .label("again"),
        .store(.init { $0[next] }, in: nextOfSlot, .relaxed),
        .update(
          slots, steps("take", 4), failing: steps.failing("take", 4), into: seen
        ) { old, registers in old == registers[next] ? slot + 1 : nil },
        .jump("made") { $0[seen] == $0[next] },
        .set(next, .init { $0[seen] }),
        .jump("again") { _ in true },
        .label("made"),
      ]
    }
    return slotModel(make(first, nextOfFirst), make(second, nextOfSecond), walk(.acquire))
  }

  /// A thread ends; the next takes its slot, but cannot keep it; the last takes it.
  private static func passedOn(_ steps: Steps) -> MemoryModel {
    let take = Step.update(isTaken, steps("take", 1), failing: steps.failing("take", 1), into: seen)
    {
      old, _ in old == 0 ? 1 : nil
    }
    return slotModel(
      [.use(depth, .write), .store(0, in: isTaken, steps("clear", 2))],
      [
        take, .jump("end") { $0[seen] != 0 }, .store(0, in: isTaken, steps("take", 5)),
        .label("end"),
      ],
      [take, .jump("end") { $0[seen] != 0 }, .use(depth, .write), .label("end")])
  }

  /// A thread ends its last use of an object, and then itself. A thread that sees the slot empty
  /// frees the object.
  private static func ended(
    _ steps: Steps, _ word: Int, _ function: String, _ operation: Int
  ) -> MemoryModel {
    slotModel(
      [
        .use(object, .read), .store(0, in: word, .release),
        .store(0, in: word, steps(function, operation)),
      ],
      [.orderAll, .await(word, .acquire, into: seen) { $0 == 0 }, .use(object, .free)])
  }
}
