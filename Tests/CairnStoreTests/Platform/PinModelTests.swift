import Testing

/// The steps of `Pins.c` and `Reclamation`, as a machine of two threads with store buffers (total
/// store order: others see a store later than a load that follows it). Every interleaving of the
/// steps and of the stores' arrival is tried.
///
/// One thread reads, twice. The other unlinks an object, retires it, and frees what it can. The
/// reader frees if it sees that its object is wanted.
struct PinModel {
  /// What is left out, or done in another order.
  enum Mistake: CaseIterable {
    case noOrderBeforeLook, noOrderBeforeSecondLook, wantedNotLookedAt, wantedNotSet
    case hazardAfterPin, hazardsBeforeEpochs, epochAfterLook
  }

  enum Word: Int { case pointer, epoch, slot, wantedPin, wantedHazard, hazard }

  struct Store: Hashable {
    var word: Int
    var value: Int
  }

  struct Machine: Hashable {
    var memory = [1, 1, 0, 0, 0, 0]
    var buffers: [[Store]] = [[], []]
    /// The next step of each thread.
    var steps = [Step.readEpoch, Step.unlink]
    var roundCount = 0
    /// What the reader has loaded.
    var epoch = 0
    var pointer = 0
    /// What the freeing thread has loaded.
    var now = 0
    var sawHazard = 0
    var tag = 0
    var isQueued = false
    var isFreed = false
    var owner: Int?

    func load(_ word: Word, by thread: Int) -> Int {
      buffers[thread].last { $0.word == word.rawValue }?.value ?? memory[word.rawValue]
    }

    mutating func store(_ value: Int, in word: Word, by thread: Int) {
      buffers[thread].append(Store(word: word.rawValue, value: value))
    }

    mutating func arrive(_ thread: Int) {
      let store = buffers[thread].removeFirst()
      memory[store.word] = store.value
    }

    mutating func orderAll() {
      for thread in buffers.indices {
        while !buffers[thread].isEmpty { arrive(thread) }
      }
    }
  }

  enum Step: Int {
    case readEpoch, pin, look, use, hold, unpin, askAfterPin, useHeld, letGo, askAfterHold
    case unlink, retire, lock, firstOrder, firstLook, secondOrder, secondLook, hazards, free, keep
    case next, done
  }

  var usesHazard: Bool
  var mistake: Mistake?

  struct Outcome: Equatable {
    var isUsedAfterFree = false
    var isNeverFreed = false
  }

  /// What can go wrong in any interleaving.
  func explore() -> (Outcome, stateCount: Int) {
    var outcome = Outcome()
    var seen: Set<Machine> = []
    var open = [Machine()]
    while let machine = open.popLast() {
      guard seen.insert(machine).inserted else { continue }
      var isOver = true
      for thread in 0..<2 {
        if !machine.buffers[thread].isEmpty {
          var after = machine
          after.arrive(thread)
          open.append(after)
          isOver = false
        }
        if machine.steps[thread] == .done { continue }
        if machine.steps[thread] == .lock, machine.owner != nil { continue }
        var after = machine
        step(&after, thread, &outcome)
        open.append(after)
        isOver = false
      }
      if isOver, machine.isQueued { outcome.isNeverFreed = true }
    }
    return (outcome, seen.count)
  }

  private func step(_ machine: inout Machine, _ thread: Int, _ outcome: inout Outcome) {
    func go(_ step: Step) { machine.steps[thread] = step }
    func ask(_ wanted: Word, otherwise step: Step) {
      if machine.load(wanted, by: thread) == 1, mistake != .wantedNotLookedAt {
        machine.store(0, in: wanted, by: thread)
        go(.lock)
      } else {
        go(step)
      }
    }
    switch machine.steps[thread] {
    case .readEpoch:
      machine.epoch = machine.load(.epoch, by: thread)
      if mistake == .epochAfterLook { machine.pointer = machine.load(.pointer, by: thread) }
      go(.pin)
    case .pin:
      machine.store(machine.epoch, in: .slot, by: thread)
      go(.look)
    case .look:
      if mistake != .epochAfterLook { machine.pointer = machine.load(.pointer, by: thread) }
      go(machine.pointer == 1 ? .use : .unpin)
    case .use:
      if machine.isFreed { outcome.isUsedAfterFree = true }
      go(usesHazard && mistake != .hazardAfterPin ? .hold : .unpin)
    case .hold:
      machine.store(1, in: .hazard, by: thread)
      go(mistake == .hazardAfterPin ? .askAfterPin : .unpin)
    case .unpin:
      machine.store(0, in: .slot, by: thread)
      go(
        usesHazard && machine.pointer == 1 && mistake == .hazardAfterPin ? .hold : .askAfterPin)
    case .askAfterPin: ask(.wantedPin, otherwise: .useHeld)
    case .useHeld:
      if usesHazard, machine.pointer == 1 {
        if machine.isFreed { outcome.isUsedAfterFree = true }
        go(.letGo)
      } else {
        go(.next)
      }
    case .letGo:
      machine.store(0, in: .hazard, by: thread)
      machine.pointer = 0
      go(.askAfterHold)
    case .askAfterHold: ask(.wantedHazard, otherwise: .next)
    case .unlink:
      machine.memory[Word.pointer.rawValue] = 0
      go(.retire)
    case .retire:
      machine.memory[Word.epoch.rawValue] += 1
      machine.tag = machine.memory[Word.epoch.rawValue]
      machine.isQueued = true
      go(.lock)
    case .lock:
      if machine.isQueued {
        machine.owner = thread
        go(.firstOrder)
      } else {
        go(.useHeld)
      }
    case .firstOrder:
      if mistake != .noOrderBeforeLook { machine.orderAll() }
      if mistake == .hazardsBeforeEpochs { machine.sawHazard = machine.load(.hazard, by: thread) }
      machine.now = machine.load(.epoch, by: thread)
      go(.firstLook)
    case .firstLook:
      let epoch = machine.load(.slot, by: thread)
      if epoch == 0 || epoch >= machine.now {
        go(.hazards)
      } else {
        if mistake != .wantedNotSet { machine.store(1, in: .wantedPin, by: thread) }
        go(.secondOrder)
      }
    case .secondOrder:
      if mistake != .noOrderBeforeSecondLook { machine.orderAll() }
      go(.secondLook)
    case .secondLook:
      let epoch = machine.load(.slot, by: thread)
      let isWanted = machine.load(.wantedPin, by: thread) == 1 || mistake == .wantedNotSet
      go(epoch != 0 && epoch < machine.tag && isWanted ? .keep : .hazards)
    case .hazards:
      let hazard =
        mistake == .hazardsBeforeEpochs ? machine.sawHazard : machine.load(.hazard, by: thread)
      if hazard == 0 {
        go(.free)
      } else {
        // As in `cairn_is_held`: marked as wanted, then all threads ordered, then checked again.
        machine.store(1, in: .wantedHazard, by: thread)
        machine.orderAll()
        go(machine.load(.hazard, by: thread) == 1 ? .keep : .free)
      }
    case .free:
      machine.isFreed = true
      machine.isQueued = false
      machine.owner = nil
      go(.useHeld)
    case .keep:
      machine.owner = nil
      go(.useHeld)
    case .next:
      if thread == 0, machine.roundCount == 0 {
        machine.roundCount = 1
        go(.readEpoch)
      } else {
        go(.done)
      }
    case .done: break
    }
    // The freeing thread holds nothing itself.
    if thread == 1, machine.steps[1] == .useHeld { machine.steps[1] = .done }
  }
}

@Suite("Every interleaving of the steps of pins")
struct PinModelTests {
  @Test("Nothing is freed too early, and nothing is kept forever", arguments: [false, true])
  func sound(usesHazard: Bool) {
    let (outcome, stateCount) = PinModel(usesHazard: usesHazard).explore()
    #expect(outcome == PinModel.Outcome())
    #expect(stateCount > 500)
  }

  @Test(
    "With a step left out or in another order, something goes wrong",
    arguments: PinModel.Mistake.allCases)
  func mistaken(mistake: PinModel.Mistake) {
    let (outcome, _) = PinModel(usesHazard: true, mistake: mistake).explore()
    #expect(outcome != PinModel.Outcome())
  }
}
