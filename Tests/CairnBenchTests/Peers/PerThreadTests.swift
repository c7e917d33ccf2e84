#if Peers
  import Synchronization
  import Testing

  @testable import CairnBench

  @Suite("Objects that belong to a thread")
  struct PerThreadTests {
    // SAFETY: `@unchecked Sendable` as `ThreadBound` is.
    private final class Number: ThreadBound, @unchecked Sendable {
      let value: Int
      init(_ value: Int) { self.value = value }
    }

    private final class Counter: Sendable {
      let count = Atomic(0)
      func next() -> Int { count.add(1, ordering: .relaxed).newValue }
    }

    @Test("a thread finds its own object again, and gives it back when the thread ends")
    func reuse() throws {
      let counter = Counter()
      let numbers = try PerThread { Number(counter.next()) }
      for _ in 0..<5 {
        let found = try ThreadTeam.run(1) { _ in
          let first = try numbers.value()
          return try numbers.value() === first ? first.value : 0
        }
        #expect(found == [1])
      }
      let ended = Mutex<[Int]>([])
      try numbers.close { number in ended.withLock { $0.append(number.value) } }
      #expect(ended.withLock { $0 } == [1])
    }

    @Test("concurrent threads have different objects")
    func different() throws {
      let counter = Counter()
      let numbers = try PerThread { Number(counter.next()) }
      let inside = Counter()
      let found = try ThreadTeam.run(4) { _ in
        let number = try numbers.value().value
        // All of them arrive before the first leaves.
        _ = inside.next()
        while inside.count.load(ordering: .relaxed) < 4 {}
        return number
      }
      #expect(Set(found) == [1, 2, 3, 4])
      try numbers.close { _ in }
    }

    @Test("an error in making an object is thrown, and nothing is kept")
    func failure() throws {
      let numbers = try PerThread { () throws -> Number in throw BenchFailure.unsuited("no") }
      #expect(throws: BenchFailure.self) { try numbers.value() }
      try numbers.close { _ in Issue.record("there is none") }
    }
  }
#endif
