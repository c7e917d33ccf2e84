import Cairn
import CairnStore
import FuzzSupport
import Testing

@Suite("What a cache keeps in metadata")
struct CacheMetadataTests {
  private func decode(_ bytes: [UInt8]) throws(CodingFailure) -> CacheMetadata {
    try bytes.withBytes { (bytes) throws(CodingFailure) in
      try CacheMetadata(decoding: bytes, wantsRest: true)
    }
  }

  @Test("The bytes of metadata match the format")
  func golden() {
    #expect(
      CacheMetadata(tag: 0x0102_0304, rest: [9, 8]).encoded == [0xCA, 1, 0, 0, 4, 3, 2, 1, 9, 8])
    #expect(CacheMetadata(tag: 0, rest: [9]).encoded == [0xCA, 1, 0, 0, 0, 0, 0, 0, 9])
    #expect(CacheMetadata(tag: 0, rest: []).encoded == [])
    #expect(
      CacheMetadata(tag: 1, tags: [[97], [98, 99]], rest: [9]).encoded
        == [0xCA, 2, 5, 0, 1, 0, 0, 0, 1, 97, 2, 98, 99, 9])
  }

  @Test("Metadata is decoded as it was encoded", arguments: [0, 1, 255, UInt32.max])
  func roundTrip(tag: UInt32) throws {
    for rest: [UInt8] in [[], [0], [0xCA, 1], [UInt8](repeating: 3, count: 1000)] {
      for tags: [[UInt8]] in [[], [[97]], (0..<32).map { [UInt8](repeating: $0, count: 255) }] {
        let metadata = CacheMetadata(tag: tag, tags: tags, rest: rest)
        #expect(try decode(metadata.encoded) == metadata)
        #expect(metadata.tags == tags)
      }
    }
  }

  @Test("Any bytes are decoded or refused, and decoded bytes are encoded as before")
  func hostile() throws {
    var random = FuzzRandom(seed: TestSeed.current)
    var accepted = 0
    for _ in 0..<20_000 {
      let tags: [[UInt8]] = random.below(2) == 0 ? [] : [[97], [98, 99]]
      var bytes = CacheMetadata(tag: UInt32(random.below(3)), tags: tags, rest: [1, 2, 3]).encoded
      if random.below(4) == 0 {
        bytes = (0..<random.below(20)).map { _ in UInt8(random.below(256)) }
      }
      for _ in 0..<random.below(3) where !bytes.isEmpty {
        bytes[random.below(bytes.count)] = UInt8(random.below(256))
      }
      bytes = Array(bytes.prefix(random.below(bytes.count + 1)))
      do throws(CodingFailure) {
        let metadata = try decode(bytes)
        accepted += 1
        // No bytes at all mean the same as a tag of 0 with nothing after it.
        if metadata != CacheMetadata(tag: 0, rest: []) {
          #expect(metadata.encoded == bytes, TestSeed.comment)
        }
      } catch {
        #expect(error.reason.hasPrefix("its metadata"))
      }
    }
    #expect(accepted > 100)
  }

  @Test("Bytes that are not a cache's are refused, each with the reason")
  func refused() {
    func reason(_ bytes: [UInt8]) -> String? {
      do throws(CodingFailure) {
        _ = try decode(bytes)
        return nil
      } catch {
        return error.reason
      }
    }
    #expect(reason([0xCA, 1, 0, 0, 0, 0, 0]) == "its metadata is not a cache's")
    #expect(reason([0xCB, 1, 0, 0, 0, 0, 0, 0]) == "its metadata is not a cache's")
    #expect(
      reason([0xCA, 3, 0, 0, 0, 0, 0, 0])
        == "its metadata has format 3, which this version cannot read")
    #expect(reason([0xCA, 1, 0, 1, 0, 0, 0, 0]) == "its metadata uses reserved bits")
    // No tags, an empty one, one that ends too early, and one that extends beyond all of them.
    for tags: [UInt8] in [[0, 0], [1, 0, 0], [1, 0, 1], [3, 0, 3, 97, 98]] {
      let bytes = [0xCA, 2] + tags.prefix(2) + [0, 0, 0, 0] + tags.dropFirst(2)
      #expect(reason(bytes) == "its metadata has invalid tags")
    }
  }
}
