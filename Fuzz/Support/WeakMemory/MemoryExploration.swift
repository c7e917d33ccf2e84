/// The search through all states of a `MemoryModel`, depth first.
package struct MemoryExploration {
  /// An execution that goes wrong.
  package struct Counterexample: Sendable, CustomStringConvertible {
    package let what: String
    package let steps: [String]

    package var description: String { (steps + [what]).joined(separator: "\n") }
  }

  private struct Event {
    var thread: Int
    var step: Int
    var value: Int?
  }

  private struct Next {
    var machine: MemoryMachine
    var event: Event
    var failure: String?
  }

  private let model: MemoryModel
  private var seen: Set<[Int]> = []
  private var path: [Event] = []
  package private(set) var counterexample: Counterexample?
  package var stateCount: Int { seen.count }

  /// - Parameter stateLimit: more states are a mistake of the model.
  fileprivate init(_ model: MemoryModel, stateLimit: Int) {
    self.model = model
    var machine = MemoryMachine(model)
    for thread in model.threads.indices {
      if let failure = settle(&machine, thread) {
        fail(failure)
        return
      }
    }
    machine.trim()
    visit(machine, stateLimit)
  }

  private mutating func fail(_ what: String) {
    counterexample = Counterexample(what: what, steps: path.map(describe))
  }

  private mutating func visit(_ machine: MemoryMachine, _ stateLimit: Int) {
    guard seen.insert(machine.numbers).inserted else { return }
    if stateCount > stateLimit { return fail("there are more than \(stateLimit) states") }
    if machine.threads.allSatisfy(\.hasEnded) {
      let values = machine.words.map { $0[$0.count - 1].value }
      let registers = machine.threads.map(\.registers)
      if !model.isRight(registers, values) {
        fail("the threads end with \(registers) and the words with \(values)")
      }
      return
    }
    var isStuck = true
    for thread in machine.threads.indices where !machine.threads[thread].hasEnded {
      for next in successors(of: machine, thread) {
        isStuck = false
        path.append(next.event)
        if let failure = next.failure { fail(failure) } else { visit(next.machine, stateLimit) }
        if counterexample != nil { return }
        path.removeLast()
      }
    }
    if isStuck { fail("no thread can go on") }
  }

  /// The states after the next step of a thread; none if it waits.
  private func successors(of machine: MemoryMachine, _ thread: Int) -> [Next] {
    let state = machine.threads[thread]
    var found: [Next] = []
    func add(
      _ after: MemoryMachine, _ value: Int? = nil, steps: Int = 1, failure: String? = nil
    ) {
      var after = after
      after.threads[thread].step += steps
      let failure = failure ?? (steps == 0 ? nil : settle(&after, thread))
      after.trim()
      let event = Event(thread: thread, step: state.step, value: value)
      found.append(Next(machine: after, event: event, failure: failure))
    }
    func access(
      _ word: Int, _ order: MemoryModel.Order, isStore: Bool, _ value: Int,
      _ body: (inout MemoryMachine) -> Void
    ) {
      var after = machine
      if order != .sequential {
        body(&after)
        return add(after, value)
      }
      let number = after.number(thread)
      body(&after)
      for ordered in after.ordered(number, word, isStore: isStore, thread) { add(ordered, value) }
    }
    func load(_ word: Int, _ index: Int, _ order: MemoryModel.Order, _ register: Int) {
      let value = machine.words[word][index].value
      access(word, order, isStore: false, value) {
        $0.read(index, of: word, order, thread)
        $0.threads[thread].registers[register] = value
      }
    }
    switch model.threads[thread].steps[state.step] {
    case .load(let word, let order, let register):
      for index in machine.readable(word, thread) { load(word, index, order, register) }
    case .await(let word, let order, let register, let isEnough):
      for index in machine.readable(word, thread) where isEnough(machine.words[word][index].value) {
        load(word, index, order, register)
      }
    case .store(let expression, let word, let order):
      let value = expression.value(state.registers)
      for place in machine.places(word, thread) {
        access(word, order, isStore: true, value) {
          $0.store(value, in: word, at: place, order, thread)
        }
      }
    case .update(let word, let order, let failing, let register, let new):
      for index in machine.readable(word, thread) {
        let old = machine.words[word][index].value
        if let value = new(old, state.registers) {
          guard machine.isFree(index + 1, word) else { continue }
          access(word, order, isStore: true, value) {
            $0.read(index, of: word, order, thread)
            $0.store(value, in: word, at: index + 1, order, thread, updates: true)
            $0.threads[thread].registers[register] = old
          }
        } else if let failing {
          load(word, index, failing, register)
        }
      }
    case .fence(let order):
      var after = machine
      after.fence(order, thread)
      add(after)
    case .orderAll:
      var after = machine
      if state.awaited.isEmpty {
        after.fence(.sequential, thread, synchronizes: true)
        after.threads[thread].awaited = Set(machine.threads.indices).subtracting([thread])
        add(after, steps: 0)
      }
      for other in state.awaited.sorted() {
        var after = machine
        after.fence(.sequential, other, synchronizes: true)
        after.threads[thread].awaited.remove(other)
        let isLast = state.awaited.count == 1
        if isLast { after.fence(.sequential, thread, synchronizes: true) }
        add(after, other, steps: isLast ? 1 : 0)
      }
    case .use(let data, let use):
      var after = machine
      let failure = after.use(data, use, thread)
      add(after, failure: failure)
    default: preconditionFailure("not a step among those of other threads")
    }
    return found
  }

  /// Runs the steps of a thread that concern no other thread. Returns what is wrong, if anything.
  private func settle(_ machine: inout MemoryMachine, _ thread: Int) -> String? {
    let program = model.threads[thread]
    while true {
      let number = machine.threads[thread].step
      guard number < program.steps.count else {
        machine.threads[thread].hasEnded = true
        return nil
      }
      machine.threads[thread].step += 1
      let registers = machine.threads[thread].registers
      switch program.steps[number] {
      case .set(let register, let expression):
        machine.threads[thread].registers[register] = expression.value(registers)
      case .jump(_, let isTaken):
        if isTaken(registers) { machine.threads[thread].step = program.targets[number] }
      case .require(let what, let isFulfilled):
        if !isFulfilled(registers) { return "not so: \(what)" }
      case .use(let data, let use) where !model.ordersAll:
        if let failure = machine.use(data, use, thread) { return failure }
      case .end: machine.threads[thread].step = program.steps.count
      case .label: break
      default:
        machine.threads[thread].step = number
        return nil
      }
    }
  }

  private func describe(_ event: Event) -> String {
    let value = event.value.map { String($0) } ?? ""
    func name(_ word: Int) -> String { model.words[word].name }
    let what =
      switch model.threads[event.thread].steps[event.step] {
      case .load(let word, let order, _), .await(let word, let order, _, _):
        "loads \(value) from \(name(word)), \(order)"
      case .store(_, let word, let order): "stores \(value) in \(name(word)), \(order)"
      case .update(let word, let order, _, _, _): "updates \(name(word)) to \(value), \(order)"
      case .use(let data, let use): "\(use) of \(model.data[data])"
      case .fence(let order): "fence, \(order)"
      case .orderAll: "orders all threads \(value)"
      default: ""
      }
    return "thread \(event.thread) step \(event.step): \(what)"
  }
}

extension MemoryModel {
  /// Tries all executions until one is wrong.
  package func explore(stateLimit: Int = 200_000) -> MemoryExploration {
    MemoryExploration(self, stateLimit: stateLimit)
  }
}
