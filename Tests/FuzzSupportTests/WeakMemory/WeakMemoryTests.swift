import FuzzSupport
import Testing

/// Every execution of small programs that take the steps of the sources.
@Suite("Threads without locks, in weak memory")
struct WeakMemoryTests {
  static let all: [WeakMemoryProtocol] = [
    .pins, .pinSlots, .versionedWords, .segmentTable, .sharedHits, .storeClock, .recencyClock,
    .followPage, .followedView, .syncInterval,
  ]

  @Test("The steps are those of the sources", arguments: all)
  func sources(subject: WeakMemoryProtocol) throws {
    for function in subject.functions.values {
      #expect(try function.sourceOperations() == function.operations, "\(function)")
    }
  }

  @Test("No execution goes wrong", arguments: all)
  func sound(subject: WeakMemoryProtocol) {
    for configuration in subject.configurations {
      #expect(configuration(subject.steps).explore().counterexample == nil)
    }
  }

  @Test("With a weaker order, an execution goes wrong, unless it is listed", arguments: all)
  func weakened(subject: WeakMemoryProtocol) {
    let (harmless, caughtCount) = subject.weaken()
    #expect(harmless == Set(subject.spare.keys))
    #expect(caughtCount >= 2)
  }

  @Test("With another mistake, an execution goes wrong", arguments: all)
  func mistaken(subject: WeakMemoryProtocol) {
    for mistake in subject.mistakes {
      var steps = subject.steps
      steps.mistake = mistake
      #expect(subject.counterexample(steps) != nil, "\(mistake)")
    }
  }

  @Test("Operations are found in Swift and in C")
  func transcriptions() {
    let swift = """
      unsafe word(run, 1).pointee.store(isKnown ? words.address : 0, ordering: .releasing)
      guard version.compareExchange(
        expected: before, desired: before + 1, ordering: .acquiringAndReleasing).exchanged
      atomicMemoryFence(ordering: .sequentiallyConsistent)
      count.store(count.load(ordering: .relaxed) &+ 1, ordering: .releasing)
      array.append(1)
      """
    #expect(
      Transcription.operations(in: swift) == [
        "store word(run,1).pointee release", "compareExchange version acquireRelease",
        "atomicMemoryFence sequential", "load count relaxed", "store count release",
      ])
    let c = """
      if (!order_all_threads()) return __atomic_load_n(&slot->epoch, __ATOMIC_ACQUIRE);
      __atomic_compare_exchange_n(&slots, &slot->next, slot, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
      __atomic_thread_fence(__ATOMIC_SEQ_CST);
      """
    #expect(
      Transcription.operations(in: c) == [
        "order_all_threads", "load_n slot->epoch acquire",
        "compare_exchange_n slots acquireRelease relaxed", "thread_fence sequential",
      ])
  }
}
