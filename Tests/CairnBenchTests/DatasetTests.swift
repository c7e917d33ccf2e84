import Cairn
import CairnLibC
import Testing

@testable import CairnBench

@Suite("Keys, values and orders")
struct DatasetTests {
  @Test("keys are 17 bytes, have the promised form and differ")
  func keys() {
    var seen: Set<String> = []
    for index in 0..<50_000 {
      let text = BenchKey(index: index, seed: 9).text
      if index < 100 {
        #expect(text.utf8.count == BenchKey.byteCount)
        #expect(text.hasPrefix("user:"))
        #expect(text.dropFirst(5).allSatisfy { $0.isHexDigit && !$0.isUppercase })
      }
      seen.insert(text)
    }
    #expect(seen.count == 50_000)
    #expect(BenchKey(index: 3, seed: 1).text != BenchKey(index: 3, seed: 2).text)
  }

  private func bytes(_ slice: ValueSlice) -> [UInt8] { unsafe [UInt8](slice.bytes) }

  @Test("a value differs from that of every other key and generation", arguments: [1, 100, 5_000])
  func values(valueByteCount: Int) {
    let data = Dataset(keyCount: 10, valueByteCount: valueByteCount, seed: 3)
    func difference(_ bytes: [UInt8], _ index: Int, _ generation: UInt16) -> String? {
      bytes.withBytes {
        data.difference($0, index: index, generation: generation, isThorough: true)
      }
    }
    let value = bytes(data.value(4, generation: 2))
    #expect(difference(value, 4, 2) == nil)
    #expect(difference(Array(value.dropLast()), 4, 2) != nil)
    #expect(difference(value + [0], 4, 2) != nil)
    for offset in [0, valueByteCount / 2, valueByteCount - 1] {
      var flipped = value
      flipped[offset] ^= 0x10
      #expect(difference(flipped, 4, 2) != nil)
    }
    if valueByteCount > 1 {
      #expect(difference(value, 5, 2) != nil)
      #expect(difference(value, 4, 3) != nil)
    }
  }

  @Test("images have the sizes of images, and each its own bytes")
  func images() {
    let data = Dataset(keyCount: 2_000, valueByteCount: 0, areImages: true, seed: 3)
    let counts = (0..<2_000).map { bytes(data.value($0, generation: 0)).count }
    #expect(counts.allSatisfy(ImageSize.range.contains))
    #expect(Set(counts).count > 1_500)
    let mean = counts.reduce(0, +) / 2_000
    #expect(abs(mean - ImageSize.meanByteCount) < 5_000)
    let difference = bytes(data.value(7, generation: 0)).withBytes {
      data.difference($0, index: 8, generation: 0, isThorough: true)
    }
    #expect(difference != nil)
  }

  @Test("the first generation follows the last one, and absence")
  func generations() {
    let data = Dataset(keyCount: 2, valueByteCount: 1, seed: 3)
    #expect(data.generation(of: 0) == Dataset.absent)
    #expect(data.nextGeneration(of: 0) == 0)
    data.setGeneration(Dataset.absent - 1, of: 0)
    #expect(data.nextGeneration(of: 0) == 0)
  }

  @Test("a permutation contains every key once")
  func permutation() {
    var random = RandomSource(seed: 1)
    let sequence = KeySequence.permutation(keyCount: 1_000, random: &random)
    #expect(sequence.indices != Array(0..<1_000))
    #expect(sequence.indices.sorted() == Array(0..<1_000))
  }

  @Test("Zipf's law makes the most popular key as popular as the law says")
  func zipf() {
    var random = RandomSource(seed: 1)
    let keyCount = 10_000
    let sequence = KeySequence.zipf(keyCount: keyCount, random: &random)
    var counts = [Int](repeating: 0, count: keyCount)
    for index in sequence.indices { counts[Int(index)] += 1 }
    var zeta = 0.0
    for rank in 1...keyCount { zeta += 1 / pow(Double(rank), 0.99) }
    let expected = Double(sequence.indices.count) / zeta
    let found = Double(counts.max() ?? 0)
    #expect(abs(found - expected) < expected * 0.1)
  }

  @Test(
    "sequences repeat after a power of two, and the seed determines them", arguments: [1, 700])
  func uniform(keyCount: Int) {
    var (first, second) = (RandomSource(seed: 4), RandomSource(seed: 4))
    let sequence = KeySequence.uniform(
      keyCount: keyCount, first: 10, writeShare: 0.25, random: &first)
    let again = KeySequence.uniform(
      keyCount: keyCount, first: 10, writeShare: 0.25, random: &second)
    #expect(sequence.indices == again.indices)
    let count = sequence.indices.count
    #expect(count & (count - 1) == 0)
    let keys = sequence.indices.map { Int($0 & ~KeySequence.writeMark) }
    #expect(keys.allSatisfy { (10..<10 + keyCount).contains($0) })
    let writes = sequence.indices.count { $0 & KeySequence.writeMark != 0 }
    #expect(abs(Double(writes) / Double(count) - 0.25) < 0.02)
  }
}
