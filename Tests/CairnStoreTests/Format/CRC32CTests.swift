import CairnStore
import FuzzSupport
import Testing

@Suite("CRC32C")
struct CRC32CTests {
  struct Vector: Sendable, CustomTestStringConvertible {
    var name: String
    var bytes: [UInt8]
    var checksum: UInt32
    var testDescription: String { name }
  }

  /// RFC 3720, appendix B.4, and the check value of the catalogue of parametrised CRCs.
  static let vectors = [
    Vector(name: "32 zeros", bytes: [UInt8](repeating: 0, count: 32), checksum: 0x8A91_36AA),
    Vector(name: "32 ones", bytes: [UInt8](repeating: 0xFF, count: 32), checksum: 0x62A8_AB43),
    Vector(name: "ascending", bytes: Array(0...31), checksum: 0x46DD_794E),
    Vector(name: "descending", bytes: Array((0...31).reversed()), checksum: 0x113F_DB5C),
    Vector(name: "123456789", bytes: Array("123456789".utf8), checksum: 0xE306_9283),
    Vector(name: "nothing", bytes: [], checksum: 0),
  ]

  @Test("The published vectors are reproduced", arguments: vectors)
  func publishedVector(vector: Vector) {
    #expect(vector.bytes.withBytes { CRC32C.checksum(of: $0) } == vector.checksum)
  }

  @Test("The portable path reproduces the published vectors too", arguments: vectors)
  func portableVector(vector: Vector) {
    #expect(vector.bytes.withBytes { ~PortableCRC32C.update(~0, with: $0) } == vector.checksum)
  }

  @Test("Both paths agree on every length up to 4,200 bytes")
  func lengths() {
    var generator = Seed.generator()
    let bytes = generator.bytes(count: 4200)
    let span = bytes.rawSpan
    var wrong: [Int] = []
    for length in 0...4200 {
      let part = span.extracting(0..<length)
      if CRC32C.checksum(of: part) != ~PortableCRC32C.update(~0, with: part) {
        wrong.append(length)
      }
    }
    #expect(wrong == [], Seed.comment)
  }

  @Test("A copy that is checked in the same pass is equal, and so is the checksum")
  func copies() {
    var generator = Seed.generator()
    let bytes = generator.bytes(count: 4200)
    let span = bytes.rawSpan
    var wrong: [Int] = []
    for length in 0...4196 {
      let part = span.extracting((length & 3)..<(length & 3) + length)
      var checksum = CRC32C()
      checksum.update(UInt64(length))
      var expected = checksum
      expected.update(part)
      var other = checksum
      let copy = checksum.update(copying: part)
      var target = [UInt8](repeating: 0, count: length + 1)
      target.withMutableSpan { other.update(copying: part, to: &$0) }
      if copy != [UInt8](copying: part) || checksum.value != expected.value
        || target != copy + [0] || other.value != expected.value
      {
        wrong.append(length)
      }
    }
    #expect(wrong == [], Seed.comment)
  }

  @Test("Both paths agree at every alignment", arguments: 0..<16)
  func alignment(offset: Int) {
    var generator = Seed.generator()
    let bytes = generator.bytes(count: 3 * 1024 + 3 * 128 + 64)
    let span = bytes.rawSpan
    for length in [
      0, 1, 7, 8, 9, 127, 128, 255, 256, 257, 383, 384, 385, 511, 512, 3071, 3072, 3073,
      3072 + 384 + 13,
    ] {
      let part = span.extracting(offset..<(offset + length))
      #expect(
        CRC32C.checksum(of: part) == ~PortableCRC32C.update(~0, with: part),
        "length \(length); \(Seed.comment)")
    }
  }

  @Test(
    "Both paths agree for lengths at which the three-stream loops run several times",
    arguments: [
      3 * 1024 * 3 - 1, 3 * 1024 * 3, 3 * 1024 * 3 + 1, 3 * 1024 * 3 + 3 * 128 + 5, 65_536,
    ])
  func streams(length: Int) {
    var generator = Seed.generator()
    let bytes = generator.bytes(count: length)
    #expect(
      CRC32C.checksum(of: bytes.rawSpan)
        == ~PortableCRC32C.update(~0, with: bytes.rawSpan), Seed.comment)
  }

  @Test("In two parts, the result is the same, wherever the cut is")
  func splits() {
    var generator = Seed.generator()
    let bytes = generator.bytes(count: 3500)
    let span = bytes.rawSpan
    let whole = CRC32C.checksum(of: span)
    var wrong: [Int] = []
    for cut in 0...span.byteCount {
      var checksum = CRC32C()
      checksum.update(span.extracting(0..<cut))
      checksum.update(span.extracting(cut..<span.byteCount))
      if checksum.value != whole { wrong.append(cut) }
    }
    #expect(wrong == [], Seed.comment)
  }

  @Test("An integer counts as its eight bytes, low end first")
  func word() {
    var asWord = CRC32C()
    asWord.update(UInt64(0x0807_0605_0403_0201))
    #expect(asWord.value == [UInt8](1...8).withBytes { CRC32C.checksum(of: $0) })
    let register = PortableCRC32C.update(~0, with: UInt64(0x0807_0605_0403_0201))
    #expect(~register == asWord.value)
  }
}
