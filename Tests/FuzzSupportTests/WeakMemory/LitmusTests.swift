import FuzzSupport
import Testing

/// The classical tests of memory models, with the outcomes that C++20 allows.
@Suite("The model of weak memory")
struct LitmusTests {
  private typealias Order = MemoryModel.Order
  private typealias Step = MemoryModel.Step

  private static let (x, y) = (0, 1)
  private static let orders: [Order] = [.relaxed, .acquireRelease, .sequential]

  private static func load(_ order: Order) -> Order {
    order == .acquireRelease ? .acquire : order
  }

  private static func store(_ order: Order) -> Order {
    order == .acquireRelease ? .release : order
  }

  /// Whether the threads, on two words that are 0, can end with these registers and words.
  private func canEnd(
    _ threads: [Step]..., as isOutcome: @escaping @Sendable ([[Int]], [Int]) -> Bool
  ) -> Bool {
    let model = MemoryModel(words: ["x": 0, "y": 0], registerCount: 2, threads: threads) {
      !isOutcome($0, $1)
    }
    return model.explore().counterexample != nil
  }

  @Test("A message passes if it is released and acquired", arguments: orders, orders)
  func messagePassing(storing: MemoryModel.Order, loading: MemoryModel.Order) {
    let canFail = canEnd(
      [.store(1, in: Self.x, .relaxed), .store(1, in: Self.y, Self.store(storing))],
      [.load(Self.y, Self.load(loading), into: 0), .load(Self.x, .relaxed, into: 1)]
    ) { registers, _ in registers[1] == [1, 0] }
    #expect(canFail == (storing == .relaxed || loading == .relaxed))
  }

  @Test("A message passes between fences", arguments: Order.allCases, Order.allCases)
  func fences(storing: MemoryModel.Order, loading: MemoryModel.Order) {
    let canFail = canEnd(
      [.store(1, in: Self.x, .relaxed), .fence(storing), .store(1, in: Self.y, .relaxed)],
      [.load(Self.y, .relaxed, into: 0), .fence(loading), .load(Self.x, .relaxed, into: 1)]
    ) { registers, _ in registers[1] == [1, 0] }
    let isReleased = [.release, .acquireRelease, .sequential].contains(storing)
    let isAcquired = [.acquire, .acquireRelease, .sequential].contains(loading)
    #expect(canFail == !(isReleased && isAcquired))
  }

  @Test("An update continues a release sequence; a store ends it", arguments: [false, true])
  func releaseSequence(isUpdate: Bool) {
    let second: Step =
      isUpdate
      ? .update(Self.y, .relaxed, failing: nil, into: 0) { old, _ in old == 1 ? 2 : nil }
      : .store(2, in: Self.y, .relaxed)
    let canFail = canEnd(
      [.store(1, in: Self.x, .relaxed), .store(1, in: Self.y, .release)],
      [.await(Self.y, .relaxed, into: 0) { $0 == 1 }, second],
      [.load(Self.y, .acquire, into: 0), .load(Self.x, .relaxed, into: 1)]
    ) { registers, _ in registers[2] == [2, 0] }
    #expect(canFail == !isUpdate)
  }

  @Test("Stores are delayed beyond loads unless all is in one order", arguments: orders)
  func storeBuffering(order: MemoryModel.Order) {
    let canFail = canEnd(
      [.store(1, in: Self.x, Self.store(order)), .load(Self.y, Self.load(order), into: 0)],
      [.store(1, in: Self.y, Self.store(order)), .load(Self.x, Self.load(order), into: 0)]
    ) { registers, _ in registers[0][0] == 0 && registers[1][0] == 0 }
    #expect(canFail == (order != .sequential))
  }

  @Test(
    "Two fences order a store before a load, or one that orders all threads",
    arguments: [[true, true], [true, false], [false, true], [false, false]], [false, true])
  func fencedStoreBuffering(fenced: [Bool], ordersAll: Bool) {
    func program(_ own: Int, _ other: Int, _ fence: Step) -> [Step] {
      let isFenced = fenced[own]
      let middle: [Step] = isFenced ? [fence] : []
      return [.store(1, in: own, .relaxed)] + middle + [.load(other, .relaxed, into: 0)]
    }
    let second: Step = ordersAll ? .orderAll : .fence(.sequential)
    let canFail = canEnd(
      program(Self.x, Self.y, .fence(.sequential)), program(Self.y, Self.x, second)
    ) { registers, _ in registers[0][0] == 0 && registers[1][0] == 0 }
    #expect(canFail == !(fenced[1] && (fenced[0] || ordersAll)))
  }

  /// A limit of the model: processors may do this, if the store does not depend on the load.
  @Test("No load sees a store that comes after it")
  func loadBuffering() {
    let canFail = canEnd(
      [.load(Self.x, .relaxed, into: 0), .store(1, in: Self.y, .relaxed)],
      [.load(Self.y, .relaxed, into: 0), .store(1, in: Self.x, .relaxed)]
    ) { registers, _ in registers[0][0] == 1 && registers[1][0] == 1 }
    #expect(!canFail)
  }

  @Test("Two readers may see two stores in opposite orders", arguments: orders)
  func independentReads(order: MemoryModel.Order) {
    let (store, load) = (Self.store(order), Self.load(order))
    let canFail = canEnd(
      [.store(1, in: Self.x, store)], [.store(1, in: Self.y, store)],
      [.load(Self.x, load, into: 0), .load(Self.y, load, into: 1)],
      [.load(Self.y, load, into: 0), .load(Self.x, load, into: 1)]
    ) { registers, _ in registers[2] == [1, 0] && registers[3] == [1, 0] }
    #expect(canFail == (order != .sequential))
  }

  @Test("With fences between, two readers see two stores in the same order", arguments: orders)
  func fencedReads(order: MemoryModel.Order) {
    let canFail = canEnd(
      [.store(1, in: Self.x, .relaxed)], [.store(1, in: Self.y, .relaxed)],
      [.load(Self.x, .relaxed, into: 0), .fence(order), .load(Self.y, .relaxed, into: 1)],
      [.load(Self.y, .relaxed, into: 0), .fence(order), .load(Self.x, .relaxed, into: 1)]
    ) { registers, _ in registers[2] == [1, 0] && registers[3] == [1, 0] }
    #expect(canFail == (order != .sequential))
  }

  /// A sequentially consistent store is not a fence (PLDI 2017, section 2).
  @Test("What follows a sequentially consistent store may be seen before it")
  func notFence() {
    func canFail(_ store: MemoryModel.Order, _ load: MemoryModel.Order) -> Bool {
      canEnd(
        [.store(1, in: Self.x, .sequential), .store(1, in: Self.y, store)],
        [.load(Self.y, load, into: 0), .load(Self.x, .sequential, into: 1)]
      ) { registers, _ in registers[1] == [1, 0] }
    }
    #expect(canFail(.relaxed, .relaxed) && canFail(.sequential, .relaxed))
    #expect(!canFail(.release, .acquire) && !canFail(.sequential, .sequential))
  }

  @Test("No thread sees a word go back")
  func coherence() {
    let canFail = canEnd(
      [.store(1, in: Self.x, .relaxed), .store(2, in: Self.x, .relaxed)],
      [.load(Self.x, .relaxed, into: 0), .load(Self.x, .relaxed, into: 1)]
    ) { registers, _ in registers[1][0] > registers[1][1] }
    #expect(!canFail)
  }

  @Test("No two updates replace the same value")
  func atomicity() {
    let update = Step.update(Self.x, .relaxed, failing: nil, into: 0) { old, _ in old + 1 }
    #expect(!canEnd([update], [update, update]) { _, words in words[Self.x] != 3 })
    let load = Step.load(Self.x, .relaxed, into: 0)
    let store = Step.store(.init { $0[0] + 1 }, in: Self.x, .relaxed)
    #expect(canEnd([load, store], [load, store]) { _, words in words[Self.x] != 2 })
  }

  @Test("The first stores of two threads may both come last", arguments: orders)
  func twoStoresEach(order: MemoryModel.Order) {
    let store = Self.store(order)
    let canFail = canEnd(
      [.store(1, in: Self.x, store), .store(2, in: Self.y, store)],
      [.store(1, in: Self.y, store), .store(2, in: Self.x, store)]
    ) { _, words in words == [1, 1] }
    #expect(canFail == (order != .sequential))
  }

  @Test("Data that a message hands over is used by one thread at a time", arguments: orders)
  func races(order: MemoryModel.Order) throws {
    let model = MemoryModel(
      words: ["flag": 0], data: ["bytes"], registerCount: 1,
      threads: [
        [.use(0, .write), .store(1, in: 0, Self.store(order))],
        [.await(0, Self.load(order), into: 0) { $0 == 1 }, .use(0, .read)],
      ])
    let found = model.explore().counterexample
    #expect((found != nil) == (order == .relaxed))
    if let found {
      #expect(
        found.steps == [
          "thread 0 step 1: stores 1 in flag, relaxed",
          "thread 1 step 0: loads 1 from flag, relaxed",
        ])
      #expect(found.what == "another use is not ordered with it")
    }
  }

  /// If the first thread loads 0 from x, its fence comes first. But no word passes with release and
  /// acquire.
  @Test("Fences alone order words, not the uses of data", arguments: [false, true])
  func dataBetweenFences(ordersAll: Bool) {
    let model = MemoryModel(
      words: ["x": 0, "y": 0], data: ["bytes"], registerCount: 1,
      threads: [
        [
          .use(0, .read), .fence(.sequential), .load(Self.x, .relaxed, into: 0),
          .store(.init { $0[0] + 1 }, in: Self.y, .relaxed),
        ],
        [
          .store(1, in: Self.x, .relaxed), ordersAll ? .orderAll : .fence(.sequential),
          .load(Self.y, .relaxed, into: 0), .jump("end") { $0[0] != 1 }, .use(0, .write),
          .label("end"),
        ],
      ])
    #expect((model.explore().counterexample == nil) == ordersAll)
  }

  @Test("Data that is free is not used")
  func free() {
    let model = MemoryModel(
      words: [:], data: ["bytes"], registerCount: 0,
      threads: [[.use(0, .write), .use(0, .free), .use(0, .read)]])
    #expect(model.explore().counterexample?.what == "it is free")
  }

  @Test("A thread that waits in vain is an error")
  func stuck() {
    let model = MemoryModel(
      words: ["flag": 0], registerCount: 1, threads: [[.await(0, .acquire, into: 0) { $0 == 1 }]])
    #expect(model.explore().counterexample?.what == "no thread can go on")
  }
}
