import FuzzSupport

/// What one process or thread announces to others.
extension WeakMemoryProtocol {
  private typealias Step = MemoryModel.Step

  // MARK: The follow page

  private static let (position, generation, session) = (0, 1, 2)
  /// The bytes before the first position, and the manifest.
  private static let (log, manifest) = (0, 1)

  /// A writer appends to the log, replaces the manifest, appends again and takes something back.
  static let followPage = WeakMemoryProtocol(
    "words of the follow page",
    [
      "load": Transcription(
        page, "package func load(", operations: ["load word(offset).pointee acquire"]),
      "store": Transcription(
        page, "package func store(", operations: ["store word(offset).pointee release"]),
    ],
    mistakes: ["position last", "position before generation"],
    [
      { steps in
        func store(_ word: Int, _ value: MemoryModel.Expression) -> Step {
          .store(value, in: word, steps("store", 0))
        }
        func load(_ word: Int) -> Step { .load(word, steps("load", 0), into: word) }
        var next: [Step] = [.use(manifest, .write), store(generation, 1), store(position, 2)]
        if steps.mistake == "position before generation" { next.swapAt(1, 2) }
        var words = [load(position), load(generation), load(session)]
        if steps.mistake == "position last" { words.swapAt(0, 2) }
        return MemoryModel(
          words: ["position": 0, "generation": 0, "session": 0], data: ["log", "manifest"],
          registerCount: 3,
          threads: [
            [.use(log, .write), store(position, 1)] + next + [
              load(session), store(session, .init { $0[session] + 1 }), store(position, 3),
            ],
            words + [
              .require("the manifest of the position") {
                $0[position] < 2 || $0[generation] == 1
              },
              .require("the session of the position") { $0[position] < 3 || $0[session] == 1 },
              .jump("no log") { $0[position] == 0 },
              .use(log, .read),
              .label("no log"),
              .jump("old") { $0[generation] == 0 },
              .use(manifest, .read),
              .label("old"),
            ],
          ])
      }
    ])

  private static let page = "Sources/CairnStore/Platform/SharedPage.swift"

  // MARK: Syncs of an interval

  /// A thread writes, and asks for a sync unless one is requested already. The sync that then ends
  /// the interval must see the write. The lock of the log would order this too.
  static let syncInterval = WeakMemoryProtocol(
    "end of a sync interval",
    [
      "request": Transcription(
        committer, "func requestSync(", operations: ["min syncDelay acquireRelease"]),
      "end": Transcription(
        committer, "func syncAtEnd()", operations: ["exchange syncDelay acquireRelease"]),
    ],
    spare: [
      "end 0: exchange syncDelay acquireRelease → acquire":
        "a thread that asks again needs to see nothing of the sync",
      "request 0: min syncDelay acquireRelease → release": "for the same reason",
    ],
    mistakes: ["end by a store"],
    [
      { steps in
        let (delay, log) = (0, 1)
        let end: Step =
          steps.mistake == nil
          ? .update(delay, steps("end", 0), failing: nil, into: 0) { _, _ in 99 }
          : .store(99, in: delay, .release)
        return MemoryModel(
          words: ["delay": 1, "log": 0], registerCount: 2,
          threads: [
            [
              .store(1, in: log, .relaxed),
              .update(delay, steps("request", 0), failing: nil, into: 0) { old, _ in min(old, 1) },
            ],
            [end, .load(log, .relaxed, into: 1)],
          ]
        ) { registers, _ in registers[0][0] == 99 || registers[1][1] == 1 }
      }
    ])

  private static let committer = "Sources/CairnStore/Engine/Committer.swift"
}
