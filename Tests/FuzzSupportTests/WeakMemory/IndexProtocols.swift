import FuzzSupport

/// The index and the table of segments.
extension WeakMemoryProtocol {
  private typealias Step = MemoryModel.Step

  private static let words = "Sources/CairnStore/Platform/SharedWords.swift"
  private static let table = "Sources/CairnStore/Platform/ReferenceTable.swift"

  // MARK: Versioned words

  /// The run: its version, the number of its table, and the label beside it.
  private static let (version, address, label) = (0, 1, 2)
  /// Two words of the first table; those of the second table and its head.
  private static let (low, high, newLow, newHigh, newCount, newLabel) = (3, 4, 5, 6, 7, 8)
  private static let (epoch, slot) = (9, 10)
  /// Registers.
  private static let (before, found, one, other, after, own, seen) = (0, 1, 2, 3, 4, 5, 6)
  private static let (oldMemory, newMemory) = (0, 1)

  static let versionedWords = WeakMemoryProtocol(
    "versioned words of the index",
    [
      "init": Transcription(
        words, "package init(zeroCount",
        operations: ["store base[0] relaxed", "store base[1] relaxed"]),
      "set": Transcription(
        words, "nonmutating set",
        operations: ["store base[Self.headCount&+index] release"]),
      "count": Transcription(
        words, "struct View", "var count", operations: ["load base[0] relaxed"]),
      "label": Transcription(
        words, "struct View", "var label", operations: ["load base[1] relaxed"]),
      "get": Transcription(
        words, "struct View", "get {",
        operations: ["load base[headCount&+index] acquire"]),
      "exchange": Transcription(
        words, "func exchange(",
        operations: ["compareExchange base[headCount&+index] relaxed"]),
      "begin": Transcription(
        words, "func beginChange(",
        operations: ["load version.pointee relaxed", "store version.pointee relaxed"]),
      "end": Transcription(
        words, "func endChange(",
        operations: [
          "store word(run,1).pointee release", "store word(run,Self.label).pointee relaxed",
          "load version.pointee relaxed", "store version.pointee release",
        ]),
      "look": Transcription(
        words, "func look<",
        operations: [
          "load word(run,0).pointee acquire", "load word(run,1).pointee acquire",
          "load word(run,0).pointee relaxed",
        ]),
    ],
    mistakes: ["touch by a store", "retired before the version is odd"],
    [{ changed($0) }, { touched($0) }, { grown($0) }, { handedOver($0) }])

  private static func indexModel(
    data: [String] = ["old memory", "new memory"], _ threads: [Step]...
  ) -> MemoryModel {
    MemoryModel(
      words: [
        "version": 0, "address": 1, "label": 1, "low": 1, "high": 1, "new low": 0, "new high": 0,
        "new count": 0, "new label": 0, "epoch": 1, "slot": 0,
      ], data: data, registerCount: 7, threads: threads)
  }

  private static func begin(_ steps: Steps) -> [Step] {
    [
      .load(version, steps("begin", 0), into: own),
      .store(.init { $0[own] + 1 }, in: version, steps("begin", 1)),
    ]
  }

  private static func set(
    _ steps: Steps, _ value: MemoryModel.Expression, low: Int = low, high: Int = high
  ) -> [Step] {
    [.store(value, in: low, steps("set", 0)), .store(value, in: high, steps("set", 0))]
  }

  private static func end(_ steps: Steps, table: MemoryModel.Expression = 1) -> [Step] {
    [
      .store(table, in: address, steps("end", 0)),
      .store(table, in: label, steps("end", 1)),
      .load(version, steps("end", 2), into: own),
      .store(.init { $0[own] + 1 }, in: version, steps("end", 3)),
    ]
  }

  /// One attempt. With both words in `one` and `other`, it goes on at the end.
  private static func look(_ steps: Steps) -> [Step] {
    [
      .load(version, steps("look", 0), into: before),
      .jump("invalid") { $0[before] % 2 == 1 },
      .load(address, steps("look", 1), into: found),
      .jump("new table") { $0[found] == 2 },
      .use(oldMemory, .read),
      .load(low, steps("get", 0), into: one),
      .load(high, steps("get", 0), into: other),
      .jump("check") { _ in true },
      .label("new table"),
      .use(newMemory, .read),
      .load(newCount, steps("count", 0), into: one),
      .load(newLabel, steps("label", 0), into: other),
      .jump("check") { $0[one] != 2 || $0[other] != 2 },
      .load(newLow, steps("get", 0), into: one),
      .load(newHigh, steps("get", 0), into: other),
      .label("check"),
      .load(version, steps("look", 2), into: after),
      .jump("invalid") { $0[before] != $0[after] },
    ]
  }

  /// A reader beside two changes of both words.
  private static func changed(_ steps: Steps) -> MemoryModel {
    let writer = [2, 3].flatMap {
      begin(steps) + set(steps, .init(integerLiteral: $0)) + end(steps)
    }
    return indexModel(
      writer,
      look(steps) + [
        .require("both words are of one version") { $0[one] == $0[other] },
        .require("the words are as new as the version") { $0[one] >= $0[before] / 2 + 1 },
        .label("invalid"),
      ])
  }

  /// A reader beside a change, and a second reader that gives a word of the new version a later tick.
  private static func touched(_ steps: Steps) -> MemoryModel {
    let touch: Step =
      steps.mistake == "touch by a store"
      ? .store(12, in: low, .relaxed)
      : .update(low, steps("exchange", 0), failing: .relaxed, into: one) { old, _ in
        old == 2 ? 12 : nil
      }
    return indexModel(
      begin(steps) + set(steps, 2) + end(steps),
      [
        .load(low, .relaxed, into: one), .jump("not yet") { $0[one] != 2 }, touch,
        .label("not yet"),
      ],
      look(steps) + [
        .require("both words are of one version") { $0[one] % 10 == $0[other] },
        .label("invalid"),
      ])
  }

  /// A reader beside a change that moves the words to a larger table.
  private static func grown(_ steps: Steps) -> MemoryModel {
    let fill: [Step] = [
      .use(newMemory, .write),
      .store(2, in: newCount, steps("init", 0)),
      .store(2, in: newLabel, steps("init", 1)),
    ]
    return indexModel(
      begin(steps) + fill + set(steps, 2, low: newLow, high: newHigh) + end(steps, table: 2),
      look(steps) + [
        .require("words, head and version belong together") {
          $0[one] == $0[found] && $0[other] == $0[found]
            && $0[found] == ($0[before] == 0 ? 1 : 2)
        },
        .label("invalid"),
      ])
  }

  /// A reader with a pin beside a change that gives the table away. It may be freed before the
  /// change ends, because the odd version unlinks it. The pins are those of `pins`.
  private static func handedOver(_ steps: Steps) -> MemoryModel {
    let retire: [Step] = [
      .update(epoch, .release, failing: nil, into: own) { old, _ in old + 1 },
      .fence(.sequential),
      .load(slot, .acquire, into: seen),
      .jump("kept") { $0[seen] != 0 && $0[seen] < $0[own] + 1 },
      .use(oldMemory, .free),
      .label("kept"),
    ]
    let pin: [Step] = [
      .load(epoch, .acquire, into: seen),
      .store(.init { $0[seen] }, in: slot, .release),
      .fence(.sequential),
    ]
    let fill: [Step] = [.use(newMemory, .write)]
    let unlink =
      steps.mistake == "retired before the version is odd"
      ? retire + begin(steps) : begin(steps) + retire
    return indexModel(
      fill + unlink + end(steps, table: 2),
      pin + look(steps) + [.label("invalid"), .store(0, in: slot, .release)])
  }

  // MARK: The table of segments

  static let segmentTable = WeakMemoryProtocol(
    "table of segments and views",
    [
      "pinned": Transcription(table, "func pinned(", operations: ["load slots[slot] acquire"]),
      "subscript": Transcription(
        table, "package subscript(slot", operations: ["load slots[slot] acquire"]),
      "withObject": Transcription(
        table, "package func withObject(", operations: ["load slots[slot] acquire"]),
      "set": Transcription(
        table, "package func set(",
        operations: ["max end relaxed", "exchange slots[slot] acquireRelease"]),
    ],
    spare: [
      "pinned 0: load slots[slot] acquire → relaxed":
        "the index entry was acquired, and the segment was published before it",
      "withObject 0: load slots[slot] acquire → relaxed":
        "the lock of the shard orders this; but the type promises it to all",
    ],
    mistakes: ["entry before segment"],
    [{ published($0) }, { locked($0) }, { viewed($0) }, { replaced($0) }])

  private static let (place, entry, lock) = (0, 1, 2)
  private static let segment = 0

  private static func tableModel(_ threads: [Step]...) -> MemoryModel {
    MemoryModel(
      words: ["slot": 0, "entry": 0, "lock": 0], data: ["object"], registerCount: 2,
      threads: threads)
  }

  private static func set(_ steps: Steps, to value: Int, _ register: Int = 0) -> Step {
    .update(place, steps("set", 1), failing: nil, into: register) { _, _ in value }
  }

  private static let useSegment: [Step] = [
    .require("the table has the segment") { $0[1] != 0 }, .use(segment, .read), .label("none"),
  ]

  /// A lock-free look-up that finds an entry. (From words of two versions, it may take any other
  /// segment, which it does not use.) Its orders are those of `versionedWords`.
  private static func published(_ steps: Steps) -> MemoryModel {
    var writer: [Step] = [
      .use(segment, .write), set(steps, to: 1), .store(1, in: entry, .release),
    ]
    if steps.mistake != nil { writer.swapAt(1, 2) }
    return tableModel(
      writer,
      [
        .load(entry, .acquire, into: 0), .jump("none") { $0[0] == 0 },
        .load(place, steps("pinned", 0), into: 1),
      ] + useSegment)
  }

  /// A look-up under the lock of the shard.
  private static func locked(_ steps: Steps) -> MemoryModel {
    let take = Step.update(lock, .acquire, failing: nil, into: 0) { old, _ in old == 0 ? 1 : nil }
    return tableModel(
      [
        .use(segment, .write), set(steps, to: 1), take, .store(1, in: entry, .relaxed),
        .store(0, in: lock, .release),
      ],
      [
        take, .load(entry, .relaxed, into: 0), .jump("none") { $0[0] == 0 },
        .load(place, steps("withObject", 0), into: 1),
      ] + useSegment + [.store(0, in: lock, .release)])
  }

  /// `Follower.views`: only the table leads to the view.
  private static func viewed(_ steps: Steps) -> MemoryModel {
    tableModel(
      [.use(segment, .write), set(steps, to: 1)],
      [.load(place, steps("subscript", 0), into: 1), .jump("none") { $0[1] == 0 }] + useSegment)
  }

  /// A thread that empties a slot releases what another thread has put there.
  private static func replaced(_ steps: Steps) -> MemoryModel {
    tableModel(
      [.use(segment, .write), set(steps, to: 1)],
      [set(steps, to: 0, 1), .jump("none") { $0[1] == 0 }] + useSegment)
  }
}
