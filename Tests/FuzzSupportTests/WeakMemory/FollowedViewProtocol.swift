import FuzzSupport

/// The view of a follower, which one thread brings up to date while others read.
extension WeakMemoryProtocol {
  private typealias Step = MemoryModel.Step

  private static let (announced, whole, seen, entries, seenGeneration) = (0, 1, 2, [3, 4], 5)

  /// One thread adds a batch of two records to the view. Another reads one record, then the other. The
  /// orders of the records are those of `versionedWords`.
  static let followedView = WeakMemoryProtocol(
    "view of a follower",
    [
      "isWhole": Transcription(
        view, "var isWhole: Bool", operations: ["load whole acquire"]),
      "isCurrent": Transcription(
        view, "var isCurrent: Bool",
        operations: ["load position acquire", "load generation relaxed"]),
      "goOn": Transcription(
        view, "func goOn(",
        operations: [
          "store whole sequential", "store position release", "store generation relaxed",
          "store whole release",
        ]),
    ],
    spare: [
      "goOn 0: store whole sequential → release":
        "whoever sees a record that was stored later, with release, sees this too",
      "goOn 0: store whole sequential → relaxed": "for the same reason",
    ],
    [{ viewed($0, looksAtPage: true) }, { viewed($0, looksAtPage: false) }])

  /// - Parameter looksAtPage: whether reads must see what the page announces (`.everyRead`), or only
  ///   whole batches (`.interval`).
  private static func viewed(_ steps: Steps, looksAtPage: Bool) -> MemoryModel {
    let goOn: [Step] = [
      .await(announced, .acquire, into: 0) { $0 == 1 },
      .store(0, in: whole, steps("goOn", 0)),
      .store(1, in: entries[0], .release),
      .store(1, in: entries[1], .release),
      .store(1, in: seen, steps("goOn", 1)),
      .store(1, in: seenGeneration, steps("goOn", 2)),
      .store(1, in: whole, steps("goOn", 3)),
    ]
    func read(_ number: Int) -> [Step] {
      let isWhole: [Step] = [
        .load(whole, steps("isWhole", 0), into: 0), .jump("refresh") { $0[0] == 0 },
      ]
      let isCurrent: [Step] = [
        .load(announced, .acquire, into: 0),
        .load(seen, steps("isCurrent", 0), into: 1),
        .jump("refresh") { $0[0] != $0[1] },
        .load(seenGeneration, steps("isCurrent", 1), into: 1),
      ]
      return isWhole + (looksAtPage ? isCurrent : [.set(0, 0)]) + [
        .load(entries[number], .acquire, into: 2 + number),
        .require("a current view has the record") { $0[0] == 0 || $0[2 + number] == 1 },
      ]
    }
    return MemoryModel(
      words: ["page": 0, "whole": 1, "position": 0, "first": 0, "second": 0, "generation": 0],
      registerCount: 4,
      threads: [
        [.store(1, in: announced, .release)], goOn,
        read(0) + read(1) + [
          .require("no read misses a record of a batch that an earlier read has seen") {
            $0[2] <= $0[3]
          },
          .label("refresh"),
        ],
      ])
  }

  private static let view = "Sources/CairnStore/Engine/Following/FollowedView.swift"
}
