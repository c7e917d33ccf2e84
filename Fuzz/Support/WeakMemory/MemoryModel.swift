/// A few threads that share words, as small programs, and what may never happen. `explore` tries
/// every execution that the memory order of C++20 allows, except those in which a load sees a store
/// that depends on it.
///
/// The operational model with views: Kang, Hur, Lahav, Vafeiadis and Dreyer, "A promising semantics
/// for relaxed-memory concurrency" (POPL 2017), without promises; Lahav, Vafeiadis, Kang, Hur and
/// Dreyer, "Repairing sequential consistency in C/C++11" (PLDI 2017), for sequentially consistent
/// accesses. A release sequence consists of read-modify-writes only.
package struct MemoryModel: Sendable {
  package enum Order: String, Sendable, CaseIterable {
    case relaxed, acquire, release, acquireRelease, sequential

    var acquires: Bool { [.acquire, .acquireRelease, .sequential].contains(self) }
    var releases: Bool { [.release, .acquireRelease, .sequential].contains(self) }
  }

  /// What a thread has loaded and computed.
  package typealias Registers = [Int]

  /// A number that may depend on the registers.
  package struct Expression: Sendable, ExpressibleByIntegerLiteral {
    let value: @Sendable (Registers) -> Int

    package init(integerLiteral number: Int) { value = { _ in number } }
    package init(_ value: @escaping @Sendable (Registers) -> Int) { self.value = value }
  }

  package enum Use: String, Sendable { case read, write, free }

  package typealias Condition = @Sendable (Registers) -> Bool

  /// Words, data and registers are numbered. The steps from `set` on take effect together with the
  /// step before them.
  package enum Step: Sendable {
    case load(_ word: Int, Order, into: Int)
    case store(Expression, in: Int, Order)
    /// Replaces the value of a word unless `new` returns `nil`, and loads the old value.
    ///
    /// - `failing`: the order if `new` returns `nil`. Without it, the thread waits.
    case update(
      _ word: Int, Order, failing: Order?, into: Int,
      new: @Sendable (_ old: Int, Registers) -> Int?)
    /// Loads until the value suffices.
    case await(_ word: Int, Order, into: Int, until: @Sendable (Int) -> Bool)
    case fence(Order)
    /// Makes every other thread execute a sequentially consistent fence, as membarrier(2) does.
    case orderAll

    /// Uses data that is not atomic. It is wrong if a write is not ordered with another use, or if
    /// data is used once it is free.
    case use(_ data: Int, Use)

    case set(_ register: Int, Expression)
    case jump(_ label: String, if: Condition)
    case label(String)
    case end
    case require(String, Condition)
  }

  package struct Thread: Sendable {
    let steps: [Step]
    /// For each step, where it jumps to.
    let targets: [Int]

    package init(_ steps: [Step]) {
      var places: [String: Int] = [:]
      for (index, step) in steps.enumerated() {
        if case .label(let name) = step { places[name] = index }
      }
      self.steps = steps
      targets = steps.map { step in
        guard case .jump(let name, _) = step else { return -1 }
        guard let place = places[name] else { preconditionFailure("no label \(name)") }
        return place
      }
    }
  }

  let words: [(name: String, value: Int)]
  let data: [String]
  let threads: [Thread]
  let registerCount: Int
  /// Whether a thread may have to execute a fence between any two steps. Otherwise, it makes no
  /// difference when data is used between two steps that concern other threads.
  let ordersAll: Bool
  /// Whether the threads may end with these registers and newest values of the words.
  let isRight: @Sendable (_ registers: [Registers], _ values: [Int]) -> Bool

  package init(
    words: KeyValuePairs<String, Int>, data: [String] = [], registerCount: Int,
    threads: [[Step]],
    isRight: @escaping @Sendable (_ registers: [Registers], _ values: [Int]) -> Bool = { _, _ in
      true
    }
  ) {
    self.words = words.map { ($0.key, $0.value) }
    self.data = data
    self.threads = threads.map(Thread.init)
    self.registerCount = registerCount
    ordersAll = threads.joined().contains { if case .orderAll = $0 { true } else { false } }
    self.isRight = isRight
  }
}
