import CairnStore
import Testing

@Suite("Bytes in memory")
struct MemoryTests {
  @Test("An integer is loaded little-endian from any offset", arguments: 0..<9)
  func load(offset: Int) {
    let bytes = [UInt8](0..<32)
    let expected = (0..<8).reduce(UInt64(0)) { $0 | UInt64(offset + $1) << UInt64(8 * $1) }
    #expect(bytes.withSpan { $0.load(UInt64.self, at: offset) } == expected)
  }

  @Test("An integer that is stored is loaded again", arguments: 0..<9)
  func store(offset: Int) {
    var bytes = [UInt8](repeating: 0xEE, count: 32)
    bytes.withMutableSpan { $0.store(UInt32(0xDEAD_BEEF), at: offset) }
    #expect(bytes.withSpan { $0.load(UInt32.self, at: offset) } == 0xDEAD_BEEF)
    #expect(bytes.count { $0 == 0xEE } == 28)
    #expect(bytes[offset] == 0xEF)
  }

  @Test("A span knows whether it is all zero, wherever the other byte is", arguments: 0..<17)
  func zero(offset: Int) {
    var bytes = [UInt8](repeating: 0, count: 17)
    #expect(bytes.withSpan { $0.isZero })
    bytes[offset] = 1
    #expect(!bytes.withSpan { $0.isZero })
  }

  @Test("A prefix is recognised, and the empty one always")
  func prefix() {
    let bytes = Array("prefix".utf8)
    for (prefix, holds) in [
      ("", true), ("pre", true), ("prefix", true), ("prefixes", false), ("x", false),
    ] {
      #expect(
        bytes.withSpan { bytes in Array(prefix.utf8).withSpan { bytes.starts(with: $0) } } == holds)
    }
  }
}
