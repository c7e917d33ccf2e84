import CairnStore
import FuzzSupport
import Testing

/// What the model predicts for operations by bytes, if it knows the sizes of records only within a
/// few bytes.
@Suite("The model of the fuzzers")
struct ModelTests {
  private let clock = ManualClock()
  private let process = SimulatedProcess.start(on: SimulatedDisk(), seed: 1)

  /// A store with six entries, and its state.
  private func fill() throws -> (store: Store, state: ModelState) {
    let store = try process.open(.simulated(clock))
    var state: ModelState = [:]
    for number in 0..<6 {
      let entry = ModelEntry(value: [UInt8](repeating: UInt8(number), count: 500))
      state.write(entry, to: OperationGenerator.keys[number], at: clock.now())
      try store.setValue(entry.value, forKey: OperationGenerator.keys[number])
    }
    return (store, state)
  }

  /// How many of an operation's steps a store shows as taken.
  private func taken(
    by operation: Operation, from state: ModelState, in store: Store
  ) throws -> Int {
    try operation.taken(
      of: operation.steps(from: state, now: clock.now()), from: state, in: store,
      limits: ModelLimits(), now: clock.now()
    ).count
  }

  @Test("A trim to bytes that removes what it must, and trims that remove more or less")
  func trimBytes() throws {
    let (store, state) = try fill()
    let limit = try store.statistics().liveByteCount - 10
    let operation = Operation.trimBytes(to: limit, .process)
    let steps = operation.steps(from: state, now: clock.now())
    #expect(steps.count == 1)
    // Nothing has been done yet.
    #expect(throws: FuzzFailure.self) { try taken(by: operation, from: state, in: store) }
    _ = try operation.perform(on: store, holding: state, now: clock.now())
    #expect(try taken(by: operation, from: state, in: store) == 1)
    try store.trim(.toCount(4))
    #expect(throws: FuzzFailure.self) { try taken(by: operation, from: state, in: store) }
    process.kill()
  }

  @Test("A crash may leave any part of a trim by the time of writing")
  func trimOlder() throws {
    let (store, state) = try fill()
    clock.advance(by: .seconds(2))
    var later = state
    let key = OperationGenerator.keys[5]
    later.write(ModelEntry(value: [1]), to: key, at: clock.now())
    try store.setValue([1], forKey: key)
    let operation = Operation.trimOlder(than: .seconds(1), by: .write, .process)
    let steps = operation.steps(from: later, now: clock.now())
    #expect(steps.count == 31)
    _ = try operation.perform(on: store, holding: later, now: clock.now())
    #expect(steps.last?.count == 1)
    let contents = try StoreContents(of: store, now: clock.now())
    #expect(contents.match(steps.suffix(1)) != nil)
    #expect(contents.match([later] + steps.dropLast()) == nil)
    process.kill()
  }

  @Test(
    "A trim by access spares entries that were read, removes those that were not, and may remove those in doubt"
  )
  func trimUnused() throws {
    var (store, state) = try fill()
    clock.advance(by: .seconds(100))
    let (read, unknown) = (OperationGenerator.keys[2], OperationGenerator.keys[4])
    _ = try store.value(forKey: read)
    state.read(read, at: clock.now())
    state[unknown]?.accessed = nil
    let operation = Operation.trimOlder(than: .seconds(50), by: .access, .process)
    let steps = operation.steps(from: state, now: clock.now())
    #expect(steps.count == 31)
    #expect(state.unused(for: .seconds(50), now: clock.now()).count == 4)
    // Nothing has been done yet.
    #expect(throws: FuzzFailure.self) { try taken(by: operation, from: state, in: store) }
    _ = try operation.perform(on: store, holding: state, now: clock.now())
    #expect(try taken(by: operation, from: state, in: store) == 31)
    try store.removeValue(forKey: read)
    #expect(throws: FuzzFailure.self) { try taken(by: operation, from: state, in: store) }
    process.kill()
  }
}
