import CairnStore
import FuzzSupport
import Testing

@Suite("The fuzzer of damage")
struct DamageFuzzTests {
  @Test("Flipped bits, a sample of all")
  func bits() throws {
    var sweep = try DamageSweep.allBits()
    // Every bit of every file of three stores, and of a byte in each LOCK and SPARE, which are empty.
    let byteCount = try DamagedStore.Kind.allCases.reduce(0) { try $0 + DamagedStore($1).byteCount }
    #expect(byteCount >= 3 * (64 << 10))
    #expect(sweep.caseCount == 8 * (byteCount + 2 * 3))
    var tally = Tally()
    for seed in 0..<400 as Range<UInt64> {
      tally.add(
        try sweep.run(
          Fuzzer.sampledCase(seed: seed, sampleCount: 400, caseCount: sweep.caseCount)))
    }
    let names = [
      "right", "values refused", "opens refused", "found by verify", "cost nothing",
      "cost one key",
    ]
    for name in names { #expect(tally[name] > 0, "\(name)") }
  }

  @Test("A bit that costs more than it may is noticed")
  func dearBits() throws {
    let store = try DamagedStore(.closed)
    let map = DamageMap(store)
    let newest = store.history.count - 1
    let name = try #require(store.names.first { FileName.isSegment($0) })
    let count = try #require(store.files[name]?.count)
    var outcomes: [[UInt8]: Int] = [:]
    for offset in 0..<count {
      if case .key(let key) = map.outcome(of: name, at: offset) { outcomes[key] = offset }
    }
    let (key, offset) = try #require(outcomes.first)
    var files = store.files
    files[name]?[offset] ^= 1
    var check = DamageCheck(store)
    try check.check(files, oldest: newest, damagedFile: name, outcome: .key(key))
    let other = try #require(outcomes.keys.first { $0 != key })
    for wrong in [.nothing, .key(other), .state(newest - 1)] as [DamageOutcome] {
      #expect(throws: FuzzFailure.self) { try check.check(files, oldest: 0, outcome: wrong) }
    }
    // A store that is refused as a whole, and one that is not.
    #expect(throws: FuzzFailure.self) {
      try check.check(store.files, oldest: newest, outcome: .refused)
    }
    files[FileName.manifest]?[20] ^= 1
    try check.check(files, oldest: newest, outcome: .refused)
    for wrong in [.nothing, .key(key)] as [DamageOutcome] {
      #expect(throws: FuzzFailure.self) { try check.check(files, oldest: newest, outcome: wrong) }
    }
  }

  @Test("The stores hold every type of file and record, and are small")
  func traits() throws {
    let stores = try DamagedStore.all()
    let traits = stores.reduce(Set<StoreTrait>()) { $0.union($1.traits) }
    #expect(traits == Set(StoreTrait.allCases))
    for store in stores { #expect(store.byteCount < 160_000) }
  }

  @Test("A bit of the checkpoint costs nothing, a bit of the manifest costs the open")
  func otherFiles() throws {
    for store in try DamagedStore.all() {
      let map = DamageMap(store)
      for name in store.names where !FileName.isSegment(name) {
        for offset in [0, 40, max(40, (store.files[name]?.count ?? 0) - 1)] {
          switch map.outcome(of: name, at: offset) {
          case .refused: #expect(name == FileName.manifest)
          case .nothing: #expect(name != FileName.manifest)
          default: Issue.record("\(name) costs something else")
          }
        }
      }
    }
  }

  @Test("The last 64 KiB of a log cut off, zeroed or filled with garbage, a sample")
  func tails() throws {
    var sweep = try DamageSweep.tails()
    #expect(sweep.caseCount == 2 * 196_608)
    var tally = Tally()
    for seed in 0..<50 as Range<UInt64> {
      tally.add(
        try sweep.run(
          Fuzzer.sampledCase(seed: seed, sampleCount: 50, caseCount: sweep.caseCount)))
    }
    #expect(tally["right"] > 0)
  }

  @Test("Random damage")
  func random() throws {
    let damage = try RandomDamage()
    var tally = Tally()
    for seed in 120..<240 as Range<UInt64> { tally.add(try damage.run(seed: seed)) }
    for name in ["right", "values refused", "opens refused", "refused by verify"] {
      #expect(tally[name] > 0, "\(name)")
    }
  }

  @Test("A wrong value, a lost key and too old a state are noticed")
  func wrongStates() throws {
    let store = try DamagedStore(.closed)
    let stranger = try DamagedStore(.closed, seed: 2)
    var check = DamageCheck(store)
    // The same keys with other values.
    #expect(throws: FuzzFailure.self) { try check.check(stranger.files, oldest: 0) }
    // Undamaged, but more was written after it.
    let early = try #require(store.earlier.first)
    #expect(throws: FuzzFailure.self) {
      try check.check(early, oldest: store.history.count - 1)
    }
    try check.check(early, oldest: 0)
    try check.check(store.files, oldest: store.history.count - 1)
  }

  @Test("An error that names another file is noticed")
  func wrongName() throws {
    let store = try DamagedStore(.closed)
    var files = store.files
    files[FileName.manifest]?[20] ^= 1
    var check = DamageCheck(store)
    let newest = store.history.count - 1
    try check.check(files, oldest: newest, damagedFile: FileName.manifest)
    #expect(throws: FuzzFailure.self) {
      try check.check(files, oldest: newest, damagedFile: "seg-0000000000000001")
    }
  }
}
