import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

/// Other tests pin and retire at the same time, and may briefly delay a free. So the tests wait for
/// "is freed". "Is kept" is certain, because the test has a pin of its own.
@Suite("Pins, and what is freed when they end", .serialized, .timeLimit(.minutes(30)))
struct PinTests {
  final class Probe: Sendable {
    let isFreed: Flag
    init(_ isFreed: Flag) { self.isFreed = isFreed }
    deinit { isFreed.value.store(true, ordering: .releasing) }
  }

  final class Flag: Sendable {
    let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .acquiring) }

    func wait() {
      while !isSet { sched_yield() }
    }
  }

  static func retire(_ flag: Flag) {
    let probe = Probe(flag)
    Reclamation.retire(probe, keeping: probe)
    Reclamation.reclaim()
  }

  @Test("An object that no thread can reach is freed")
  func unpinned() {
    let isFreed = Flag()
    Self.retire(isFreed)
    isFreed.wait()
  }

  @Test("An object that is retired during a pin is kept until the pin ends, which frees it")
  func pinned() throws {
    let isFreed = Flag()
    let pin = try #require(Pin())
    Self.retire(isFreed)
    #expect(!isFreed.isSet)
    pin.end()
    isFreed.wait()
  }

  @Test("A pin that ends under a lock leaves the freeing to the next check of what is due")
  func underLock() throws {
    let isFreed = Flag()
    let pin = try #require(Pin())
    Self.retire(isFreed)
    Reclamation.reclaim()
    pin.endUnderLock()
    Reclamation.reclaimIfDue()
    isFreed.wait()
  }

  /// A write to a full or slow disk may take long.
  @Test("A put has no pin while it writes to a file")
  func put() throws {
    let scene = try StoreScene()
    let store = try scene.open { $0.mapsFiles = false }
    try store.setValue("v", forKey: "key")
    let isBegun = Flag()
    let isFreedMeanwhile = Flag()
    scene.fileSystem.setHook { event in
      guard event.call == .write, !isBegun.value.exchange(true, ordering: .relaxed) else {
        return nil
      }
      let isFreed = Flag()
      Self.retire(isFreed)
      for _ in 0..<60_000 where !isFreed.isSet {
        usleep(1000)
        Reclamation.reclaim()
      }
      isFreedMeanwhile.value.store(isFreed.isSet, ordering: .relaxed)
      return nil
    }
    try store.setValue("w", forKey: "key")
    #expect(isFreedMeanwhile.isSet)
    try store.close()
  }

  @Test("A pin within a pin ends nothing")
  func nested() throws {
    let isFreed = Flag()
    let outer = try #require(Pin())
    Self.retire(isFreed)
    let inner = try #require(Pin())
    inner.end()
    Reclamation.reclaim()
    #expect(!isFreed.isSet)
    outer.end()
    isFreed.wait()
  }

  /// An object whose deinit waits until a flag is set.
  final class SlowProbe: Sendable {
    let isBegun: Flag, isReleased: Flag
    init(_ isBegun: Flag, until isReleased: Flag) {
      self.isBegun = isBegun
      self.isReleased = isReleased
    }
    deinit {
      isBegun.value.store(true, ordering: .releasing)
      isReleased.wait()
    }
  }

  @Test("An object whose freeing takes long delays no other")
  func slowFreeing() throws {
    let isBegun = Flag(), isReleased = Flag(), isFirst = Flag(), isLast = Flag()
    let thread = Background {
      let pin = try #require(Pin())
      Self.retire(isFirst)
      do {
        let slow = SlowProbe(isBegun, until: isReleased)
        Reclamation.retire(slow, keeping: slow)
      }
      Self.retire(isLast)
      pin.end()
    }
    defer { isReleased.value.store(true, ordering: .releasing) }
    try waitUntil { isBegun.isSet }
    let areOthersFreed = Result {
      try waitUntil {
        Reclamation.reclaim()
        return isFirst.isSet && isLast.isSet
      }
    }
    isReleased.value.store(true, ordering: .releasing)
    #expect(thread.finishes())
    try areOthersFreed.get()
  }

  @Test("A pin that begins later delays nothing")
  func later() throws {
    let isFreed = Flag(), isOther = Flag()
    let pin = try #require(Pin())
    Self.retire(isOther)
    Self.retire(isFreed)
    pin.end()
    let next = try #require(Pin())
    defer { next.end() }
    isFreed.wait()
    isOther.wait()
  }

  @Test("A slot keeps one object beyond its pin, and none that others retire")
  func hazard() throws {
    let isFreed = Flag(), isOther = Flag()
    let pin = try #require(Pin())
    let hazard: Hazard
    do {
      let probe = Probe(isFreed)
      hazard = try #require(Hazard(holding: probe))
      #expect(Hazard(holding: probe) == nil, "one at a time")
      Reclamation.retire(probe, keeping: probe)
    }
    pin.end()
    Self.retire(isOther)
    isOther.wait()
    #expect(!isFreed.isSet)
    hazard.end()
    isFreed.wait()
  }

  @Test("If a thread delays an object, another thread's attempt frees it once the first ends")
  func otherThread() throws {
    let isFreed = Flag(), isPinned = Flag(), mayEnd = Flag(), hasEnded = Flag()
    Thread.detachNewThread {
      guard let pin = Pin() else { return }
      isPinned.value.store(true, ordering: .releasing)
      mayEnd.wait()
      pin.end()
      hasEnded.value.store(true, ordering: .releasing)
    }
    isPinned.wait()
    Self.retire(isFreed)
    #expect(!isFreed.isSet)
    mayEnd.value.store(true, ordering: .releasing)
    hasEnded.wait()
    isFreed.wait()
  }

  @Test("Readers never see freed objects, however often they are replaced", arguments: [1, 3])
  func churn(readerCount: Int) {
    let table = ReferenceTable<Probe>(slotCount: 1)
    table.set(0, to: Probe(Flag()))
    let counts = Counts()
    besideReaders(readerCount) {
      guard let pin = Pin() else { return }
      // No reference to the object is held: only the pin keeps it.
      table.withObject(in: 0) { probe in
        for _ in 0..<8 {
          if probe.isFreed.isSet { counts.bad.add(1, ordering: .relaxed) }
          counts.seen.add(1, ordering: .relaxed)
        }
      }
      pin.end()
    } write: {
      for _ in 0..<20_000 {
        guard let old = table[0] else { continue }
        table.set(0, to: Probe(Flag()))
        Reclamation.retire(old, keeping: old)
        Reclamation.reclaim()
      }
    }
    #expect(counts.bad.load(ordering: .relaxed) == 0)
    #expect(counts.seen.load(ordering: .relaxed) > 0)
  }

  final class Counts: Sendable {
    let seen = Atomic(0), bad = Atomic(0)
  }
}

@Suite("Words that are read without a lock", .timeLimit(.minutes(30)))
struct VersionedWordsTests {
  @Test("A read sees words of one moment, even if the run is replaced by a longer one")
  func consistency() throws {
    let versions = VersionedWords(count: 2)
    let counts = PinTests.Counts()
    var words = try SharedWords(zeroCount: 4, label: 0, budget: .unlimited)
    versions.beginChange(1)
    versions.endChange(1, words)
    try besideReaders(2) {
      guard let pin = Pin() else { return }
      let seen = versions.look(at: 1) { view in (0..<view.count).map { view[$0] } }
      pin.end()
      guard let seen else { return }
      counts.seen.add(1, ordering: .relaxed)
      if Set(seen).count != 1 { counts.bad.add(1, ordering: .relaxed) }
    } write: {
      for round in 1...20_000 {
        versions.beginChange(1)
        if round % 16 == 1 {
          words = try SharedWords(zeroCount: 4 + round % 7, label: 0, budget: .unlimited)
        }
        for index in 0..<words.count { words[index] = UInt64(round) }
        versions.endChange(1, words)
        Reclamation.reclaimIfDue()
      }
    }
    #expect(counts.bad.load(ordering: .relaxed) == 0)
    #expect(counts.seen.load(ordering: .relaxed) > 0)
  }

  @Test("While a run changes, or is unknown, a read returns nothing")
  func changing() throws {
    let versions = VersionedWords(count: 1)
    let pin = try #require(Pin())
    defer { pin.end() }
    #expect(versions.look(at: 0) { $0.count } == 0)
    versions.beginChange(0)
    versions.endChange(0, SharedWords(), isKnown: false)
    #expect(versions.look(at: 0) { $0.count } == nil)
    let words = try SharedWords(zeroCount: 3, label: 7, budget: .unlimited)
    versions.beginChange(0)
    versions.endChange(0, words)
    #expect(versions.look(at: 0) { $0.count } == 3)
    #expect(versions.look(at: 0) { $0.label } == 7)
    var label: UInt64 = 0
    versions.prefetch(at: 0) {
      label = $0
      return 2
    }
    #expect(label == 7)
    versions.beginChange(0)
    #expect(versions.look(at: 0) { $0.count } == nil)
    // The words may be freed: a prefetch does not read them.
    versions.prefetch(at: 0) { _ in 1 << 40 }
    versions.endChange(0, words)
    #expect(versions.look(at: 0) { $0.count } == 3)
  }

  @Test("A word is exchanged only if it is still the one that was seen")
  func exchange() throws {
    let versions = VersionedWords(count: 1)
    let words = try SharedWords(zeroCount: 2, label: 0, budget: .unlimited)
    versions.beginChange(0)
    versions.endChange(0, words)
    let pin = try #require(Pin())
    defer { pin.end() }
    words[1] = 5
    versions.look(at: 0) { $0.exchange(1, from: 4, to: 6) }
    #expect(words[1] == 5)
    versions.look(at: 0) { $0.exchange(1, from: 5, to: 6) }
    #expect(words[1] == 6)
  }
}
