import Testing

/// Two threads whose stores reach each other only as far as release and acquire promise (C++20), and
/// in any order otherwise. Every interleaving of their steps, and every value that a load may
/// return, is tried. See `PinModel` for the steps of pins under store buffers.
private struct OrderingModel {
  /// For each word, the index of the newest message that is seen.
  typealias View = [Int]

  struct Message: Hashable {
    var value: Int
    /// What a thread that acquires this message sees.
    var view: View
  }

  struct Machine: Hashable {
    var words: [[Message]]
    var views: [View]
    /// How many steps each thread has done.
    var stepCounts = [0, 0]
    /// What each thread has loaded last.
    var loaded = [0, 0]

    mutating func store(_ value: Int, in word: Int, by thread: Int, isRelease: Bool) {
      let index = words[word].count
      views[thread][word] = index
      var view = View(repeating: 0, count: words.count)
      view[word] = index
      words[word].append(Message(value: value, view: isRelease ? views[thread] : view))
    }

    mutating func acquire(_ index: Int, of word: Int, by thread: Int) {
      loaded[thread] = words[word][index].value
      views[thread][word] = index
      join(words[word][index].view, thread)
    }

    mutating func join(_ view: View, _ thread: Int) {
      for word in view.indices { views[thread][word] = max(views[thread][word], view[word]) }
    }
  }

  enum Step {
    case store(Int, in: Int, isRelease: Bool)
    /// Loads with acquire ordering.
    case load(Int)
    /// Loads the newest value and stores another one. Acquires and releases.
    case exchange(Int, in: Int)
    /// Makes all threads see everything, as membarrier(2) does.
    case orderAll
  }

  /// The words' values at the beginning.
  let start: [Int]
  let programs: [[Step]]
  /// Whether the threads must not end like this.
  let isWrong: (Machine) -> Bool

  /// Whether the threads can end wrong.
  func canEndWrong() -> Bool {
    let view = View(repeating: 0, count: start.count)
    var open = [
      Machine(words: start.map { [Message(value: $0, view: view)] }, views: [view, view])
    ]
    var seen: Set<Machine> = []
    while let machine = open.popLast() {
      guard seen.insert(machine).inserted else { continue }
      if machine.stepCounts == programs.map(\.count), isWrong(machine) { return true }
      for thread in 0..<2 where machine.stepCounts[thread] < programs[thread].count {
        open += machines(after: machine, thread)
      }
    }
    return false
  }

  private func machines(after machine: Machine, _ thread: Int) -> [Machine] {
    var after = machine
    after.stepCounts[thread] += 1
    switch programs[thread][machine.stepCounts[thread]] {
    case .store(let value, let word, let isRelease):
      after.store(value, in: word, by: thread, isRelease: isRelease)
    case .load(let word):
      return (machine.views[thread][word]..<machine.words[word].count).map { index in
        var after = after
        after.acquire(index, of: word, by: thread)
        return after
      }
    case .exchange(let value, let word):
      after.acquire(machine.words[word].count - 1, of: word, by: thread)
      after.store(value, in: word, by: thread, isRelease: true)
    case .orderAll:
      for other in 0..<2 { after.join(machine.views[1 - other], other) }
    }
    return [after]
  }
}

@Suite("Every outcome that the ordering of words allows")
struct OrderingModelTests {
  /// A reader in a pin of epoch 1 uses an object, ends the pin and begins another, of epoch 2. A
  /// thread that has unlinked the object looks at the reader's slot, and frees the object unless the
  /// slot shows epoch 1. It must then see the use as done.
  @Test("A pin that begins again ends the uses of the last one", arguments: [true, false])
  func pin(isRelease: Bool) {
    let (slot, use) = (0, 1)
    let model = OrderingModel(
      start: [1, 0],
      programs: [
        [
          .store(1, in: use, isRelease: false), .store(0, in: slot, isRelease: true),
          .store(2, in: slot, isRelease: isRelease),
        ],
        [.orderAll, .load(slot)],
      ]
    ) { $0.loaded[1] != 1 && $0.views[1][use] == 0 }
    #expect(model.canEndWrong() == !isRelease)
  }

  /// A thread writes, and requests a sync unless one is requested already. The sync that then ends
  /// the interval must see the write. As in `Committer`, but without the log's lock.
  @Test("A sync at the end of an interval sees what relies on it", arguments: [true, false])
  func interval(isExchange: Bool) {
    let (log, request) = (0, 1)
    let end: OrderingModel.Step =
      isExchange ? .exchange(0, in: request) : .store(0, in: request, isRelease: false)
    let model = OrderingModel(
      start: [0, 1],
      programs: [
        [.store(1, in: log, isRelease: true), .exchange(1, in: request)], [end, .load(log)],
      ]
    ) { $0.loaded == [1, 0] }
    #expect(model.canEndWrong() == !isExchange)
  }
}
