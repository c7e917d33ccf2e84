/// Random numbers that a seed reproduces: SplitMix64 (Steele, Lea and Flood, 2014).
package struct FuzzRandom: RandomNumberGenerator, ChoiceSource, Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }

  /// A number in `0..<bound`. The bias is below one in 2³² for the bounds used here.
  package mutating func below(_ bound: Int) -> Int {
    Int(truncatingIfNeeded: next().multipliedFullWidth(by: UInt64(bound)).high)
  }

  package mutating func bytes(count: Int) -> [UInt8] {
    var bytes = [UInt8]()
    bytes.reserveCapacity(count + 8)
    while bytes.count < count {
      var word = next()
      for _ in 0..<8 {
        bytes.append(UInt8(truncatingIfNeeded: word))
        word >>= 8
      }
    }
    bytes.removeLast(bytes.count - count)
    return bytes
  }

  /// A separate generator, which advances this one's sequence by only one step.
  package mutating func split() -> FuzzRandom { FuzzRandom(seed: next()) }
}
