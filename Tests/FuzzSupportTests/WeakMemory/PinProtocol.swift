import FuzzSupport

/// The steps of `Pins.c` and of `Reclamation`. One thread reads, the other unlinks a segment,
/// retires it and frees what it can. The reader frees if it sees that it is awaited.
extension WeakMemoryProtocol {
  private static let header = "Sources/CCairn/include/CCairn.h"
  private static let source = "Sources/CCairn/Pins.c"

  private typealias Step = MemoryModel.Step

  private static let (pointer, epoch, slots, slot, wantedPin, hazard) = (0, 1, 2, 3, 4, 5)
  private static let (wantedHazard, lock, tag) = (6, 7, 8)
  /// Registers: what the thread has loaded.
  private static let (pinned, seen, now, shown, oldest, queued) = (0, 1, 2, 3, 4, 5)
  private static let segment = 0
  private static let slotItself = 1

  static let pins = WeakMemoryProtocol(
    "pins and hazards",
    [
      "pin": Transcription(
        header, "*cairn_pin(void)",
        operations: [
          "load_n cairn_pin_epoch acquire", "store_n slot->epoch release", "cairn_pin_fence",
        ]),
      "isWanted": Transcription(
        header, "cairn_is_wanted(uint32_t",
        operations: ["cairn_pin_fence", "load_n wanted relaxed", "store_n wanted release"]),
      "unpin": Transcription(
        header, "cairn_unpin(", operations: ["store_n slot->epoch release"]),
      "hold": Transcription(
        header, "*cairn_hold(",
        operations: ["load_n slot->hazard relaxed", "store_n slot->hazard release"]),
      "letGo": Transcription(
        header, "cairn_let_go(", operations: ["store_n slot->hazard release"]),
      "nextEpoch": Transcription(
        header, "uint64_t cairn_next_pin_epoch(",
        operations: ["add_fetch cairn_pin_epoch acquireRelease"]),
      "orderAll": Transcription(
        source, "order_all_threads(void)",
        operations: ["thread_fence sequential", "order_threads"]),
      "oldest": Transcription(
        source, "cairn_oldest_pin(void)",
        operations: [
          "load_n cairn_pin_epoch acquire", "order_all_threads", "load_n slots acquire",
          "load_n slot->epoch acquire", "store_n slot->wanted_pin relaxed", "order_all_threads",
          "load_n slot->epoch acquire", "load_n slot->wanted_pin acquire",
        ]),
      "isHeld": Transcription(
        source, "cairn_is_held(",
        operations: [
          "load_n slots acquire", "load_n slot->hazard acquire",
          "store_n slot->wanted_hazard relaxed", "order_all_threads",
          "load_n slot->hazard acquire",
        ]),
    ],
    spare: [
      "nextEpoch 0: add_fetch cairn_pin_epoch acquireRelease → release":
        "epochs begin under the lock of the queue, and updates continue a release sequence",
      "oldest 0: load_n cairn_pin_epoch acquire → relaxed": "the lock of the queue orders this",
    ],
    mistakes: ["look before pin", "hold after unpin"],
    [true, false].flatMap { isFenced in
      Scene.allCases.map { scene in
        { @Sendable steps in model(steps, scene, isFenced) }
      }
    })

  /// What the reader does.
  private enum Scene: CaseIterable {
    /// Two pins; one pin with the first slot of the process; an object held beyond a pin; then
    /// another one.
    case pins, newSlot, hold, holds
  }

  private static func model(_ steps: Steps, _ scene: Scene, _ isFenced: Bool) -> MemoryModel {
    // The orders of the pointer do not matter here.
    let unlink: [Step] = [
      .update(pointer, .relaxed, failing: nil, into: seen) { _, _ in 0 },
      .update(lock, .acquire, failing: nil, into: seen) { old, _ in old == 0 ? 1 : nil },
      .update(epoch, steps("nextEpoch", 0), failing: nil, into: queued) { old, _ in old + 1 },
      .store(.init { $0[queued] + 1 }, in: tag, .relaxed),
      .store(0, in: lock, .release),
    ]
    var reader: [Step] = []
    switch scene {
    case .pins:
      for name in ["first", "second"] { reader += pin(steps, name, holds: false, isFenced) }
    case .newSlot:
      reader = [
        .use(slotItself, .write),
        .update(slots, .release, failing: nil, into: seen) { _, _ in 1 },
      ]
      reader += pin(steps, "", holds: false, isFenced)
    case .hold, .holds:
      reader = pin(steps, "", holds: true, isFenced)
      if scene == .holds { reader.append(.store(2, in: hazard, steps("hold", 1))) }
    }
    return MemoryModel(
      words: [
        "pointer": 1, "epoch": 1, "slots": scene == .newSlot ? 0 : 1, "slot": 0, "wanted pin": 0,
        "hazard": 0, "wanted hazard": 0, "lock": 0, "tag": 0,
      ], data: ["segment", "slot"], registerCount: 6,
      threads: [reader, unlink + reclaim(steps, "", isFenced)]
    ) { _, values in
      // In the end, the segment has been freed.
      values[tag] == 0
    }
  }

  private static func fence(_ order: MemoryModel.Order, _ isFenced: Bool) -> [Step] {
    isFenced && order != .relaxed ? [.fence(order)] : []
  }

  private static func orderAll(
    _ steps: Steps, _ call: MemoryModel.Order, _ isFenced: Bool
  ) -> [Step] {
    if call == .relaxed { return [] }
    let fence: [Step] = [.fence(steps("orderAll", 0))]
    return !isFenced && steps("orderAll", 1) == .sequential ? fence + [.orderAll] : fence
  }

  private static func pin(
    _ steps: Steps, _ name: String, holds: Bool, _ isFenced: Bool
  ) -> [Step] {
    let show: [Step] =
      [
        .load(epoch, steps("pin", 0), into: seen),
        .store(.init { $0[seen] }, in: slot, steps("pin", 1)),
      ] + fence(steps("pin", 2), isFenced)
    let look: [Step] = [.load(pointer, .relaxed, into: pinned)]
    var program = steps.mistake == "look before pin" ? look + show : show + look
    program += [.jump("unpin" + name) { $0[pinned] == 0 }, .use(segment, .read)]
    let hold: [Step] = holds ? [.store(1, in: hazard, steps("hold", 1))] : []
    let unpin: [Step] = [
      .label("unpin" + name), .store(0, in: slot, steps("unpin", 0)),
      .jump("asked" + name) { $0[pinned] == 0 },
    ]
    program += steps.mistake == "hold after unpin" ? unpin + hold : hold + unpin
    program.append(.label("asked" + name))
    program += ask(steps, wantedPin, name + "pin", isFenced)
    if holds {
      program += [
        .jump("end" + name) { $0[pinned] == 0 }, .use(segment, .read),
        .store(0, in: hazard, steps("letGo", 0)),
      ]
      program += ask(steps, wantedHazard, name + "hazard", isFenced)
    }
    return program + [.label("end" + name), .set(seen, 0), .set(pinned, 0)]
  }

  private static func ask(
    _ steps: Steps, _ wanted: Int, _ name: String, _ isFenced: Bool
  ) -> [Step] {
    fence(steps("isWanted", 0), isFenced) + [
      .load(wanted, steps("isWanted", 1), into: seen),
      .jump("go on" + name) { $0[seen] == 0 },
      .store(0, in: wanted, steps("isWanted", 2)),
    ] + reclaim(steps, name, isFenced) + [.label("go on" + name)]
  }

  private static func reclaim(_ steps: Steps, _ name: String, _ isFenced: Bool) -> [Step] {
    var program: [Step] = [
      .update(lock, .acquire, failing: nil, into: seen) { old, _ in old == 0 ? 1 : nil },
      .load(tag, .relaxed, into: queued),
      .jump("unlock" + name) { $0[queued] == 0 },
      .load(epoch, steps("oldest", 0), into: now),
    ]
    program += orderAll(steps, steps("oldest", 1), isFenced)
    program += [
      .load(slots, steps("oldest", 2), into: seen),
      .set(oldest, 99),
      .jump("hazards" + name) { $0[seen] == 0 },
      .use(slotItself, .read),
      .load(slot, steps("oldest", 3), into: shown),
      .jump("hazards" + name) { $0[shown] == 0 || $0[shown] >= $0[now] },
      .store(1, in: wantedPin, steps("oldest", 4)),
    ]
    program += orderAll(steps, steps("oldest", 5), isFenced)
    program += [
      .load(slot, steps("oldest", 6), into: shown),
      .jump("hazards" + name) { $0[shown] == 0 },
      .load(wantedPin, steps("oldest", 7), into: seen),
      .jump("hazards" + name) { $0[seen] == 0 },
      .set(oldest, .init { $0[shown] }),
      .label("hazards" + name),
      .jump("unlock" + name) { $0[queued] > $0[oldest] },
      .load(slots, steps("isHeld", 0), into: seen),
      .jump("free" + name) { $0[seen] == 0 },
      .use(slotItself, .read),
      .load(hazard, steps("isHeld", 1), into: seen),
      .jump("free" + name) { $0[seen] != 1 },
      .store(1, in: wantedHazard, steps("isHeld", 2)),
    ]
    program += orderAll(steps, steps("isHeld", 3), isFenced)
    return program + [
      .load(hazard, steps("isHeld", 4), into: seen),
      .jump("unlock" + name) { $0[seen] == 1 },
      .label("free" + name),
      .use(segment, .free),
      .store(0, in: tag, .relaxed),
      .label("unlock" + name),
      .store(0, in: lock, .release),
      .set(seen, 0), .set(now, 0), .set(shown, 0), .set(oldest, 0), .set(queued, 0),
    ]
  }
}
