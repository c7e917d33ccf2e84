import CairnStore
import Testing

@Suite("The header of a checkpoint")
struct CheckpointFormatTests {
  private func sample() -> Checkpoint {
    var checkpoint = Checkpoint(storeIdentifier: Array(1...16), id: 0x0102)
    checkpoint.floorSequence = 3
    checkpoint.lastSequence = 0x0506
    checkpoint.tick = 0x0708
    checkpoint.samples = [
      Checkpoint.Sample(tick: 1, time: Timestamp(millisecondsSinceEpoch: 0x1122_3344_5566))
    ]
    var segment = Checkpoint.CoveredSegment(
      id: SegmentID(rawValue: 9), salt: 0x0A0B_0C0D_0E0F_1011, end: 72 + 240)
    segment.granule = 2
    segment.granuleCount = 1
    segment.liveByteCount = 80
    segment.putCount = 3
    segment.livePutCount = 2
    segment.tombstoneCount = 1
    segment.tombstoneByteCount = 32
    segment.highestTombstone = 5
    segment.lowestSequence = 4
    segment.highestSequence = 0x0506
    segment.earliestExpiry = 0x7766
    segment.shortestIdleLimit = 0x5544
    checkpoint.segments = [segment]
    var offset = checkpoint.headerByteCount
    for index in checkpoint.shards.indices {
      checkpoint.shards[index].offset = offset
      if index == 1 {
        checkpoint.shards[index].count = 2
        checkpoint.shards[index].expirableCount = 1
        checkpoint.shards[index].checksum = 0xCAFE_F00D
        offset += 32
      }
    }
    return checkpoint
  }

  private func decode(_ bytes: [UInt8], fileByteCount: Int) throws(StoreError) -> Checkpoint {
    try Checkpoint(
      decoding: bytes.rawSpan, fileByteCount: fileByteCount, checksum: nil, file: "ckpt")
  }

  @Test("The header's bytes match the format")
  func golden() throws {
    let checkpoint = sample()
    let bytes = checkpoint.encodedHeader()
    #expect(bytes.count == 80 + 16 + 112 + 256 * 20 + 8)
    func hex(_ range: Range<Int>) -> String {
      bytes[range].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
    #expect(hex(0..<16) == "8b43524e430d0a1a01000000d8140000")
    #expect(hex(16..<32) == "0102030405060708090a0b0c0d0e0f10")
    #expect(hex(32..<56) == "020100000000000003000000000000000605000000000000")
    #expect(hex(56..<80) == "080700000000000002000000000000000100000001000000")
    #expect(hex(80..<96) == "01000000000000006655443322110000")
    #expect(hex(96..<120) == "090000000000000011100f0e0d0c0b0a3801000000000000")
    #expect(hex(120..<144) == "020000000100000050000000000000000300000000000000")
    #expect(hex(144..<168) == "020000000000000001000000000000002000000000000000")
    #expect(hex(168..<184) == "05000000000000000400000000000000")
    #expect(hex(184..<208) == "060500000000000066770000000000004455000000000000")
    #expect(hex(208..<228) == "d814000000000000000000000000000000000000")
    #expect(hex(228..<248) == "d81400000000000002000000010000000df0feca")
    #expect(hex(248..<256) == "f814000000000000")
    let checksum = CRC32C.checksum(of: bytes.rawSpan.extracting(0..<(bytes.count - 4)))
    #expect(bytes.withBytes { $0.load(UInt32.self, at: $0.byteCount - 4) } == checksum)
    #expect(try decode(bytes, fileByteCount: checkpoint.byteCount) == checkpoint)
  }

  @Test("More entries than an index holds are refused before memory is taken for them")
  func hugeParts() throws {
    for (count, oldestCount) in [
      (1 << 24, 4096), ((1 << 24) + 1, 0), (1 << 32 - 1, 0), (1 << 24, 4097), (1 << 24, 1 << 24),
    ] {
      var checkpoint = sample()
      checkpoint.segments[0].end = 1 << 40
      checkpoint.segments[0].granuleCount = 1 << 14
      checkpoint.segments[0].putCount = count
      checkpoint.segments[0].livePutCount = count
      checkpoint.shards[1].count = count
      for index in checkpoint.shards.indices.dropFirst(2) {
        checkpoint.shards[index].offset += 16 * (count - 2)
      }
      checkpoint.oldestCount = oldestCount
      let isSound = count <= 1 << 24 && oldestCount <= 4096
      let bytes = checkpoint.encodedHeader()
      let error = storeError { _ = try decode(bytes, fileByteCount: checkpoint.byteCount) }
      #expect((error == nil) == isSound, "\(count), \(oldestCount)")
    }
  }

  @Test("Contradictory fields are refused although the checksum is right")
  func contradictions() throws {
    let good = sample()
    let changes: [(inout Checkpoint) -> Void] = [
      { $0.tick = 1 << 44 }, { $0.tick = 0 }, { $0.lastSequence = 5 },
      { $0.lastSequence = (1 << 62) + 1 }, { $0.segments[0].end = 71 },
      { $0.segments[0].end += 4 }, { $0.segments[0].putCount = 11 },
      { $0.segments[0].tombstoneByteCount = 161 }, { $0.segments[0].highestTombstone = 0 },
      { $0.segments[0].highestTombstone = 0x0507 }, { $0.segments[0].livePutCount = 3 },
      { $0.segments[0].livePutCount = 1 },
      { $0.segments[0].liveByteCount = 241 }, { $0.segments[0].granule = 0 },
      { $0.segments[0].granule = 1 << 17 }, { $0.segments[0].granuleCount = 0 },
      { $0.segments[0].lowestSequence = 0x0507 }, { $0.segments.append($0.segments[0]) },
      { checkpoint in
        var other = checkpoint.segments[0]
        other.id = SegmentID(rawValue: 10)
        other.livePutCount = 0
        checkpoint.segments.append(other)
      },
      { $0.shards[1].expirableCount = 3 }, { $0.shards[1].count = 3 },
      { $0.shards[7].offset += 16 }, { $0.samples[0].tick = 0x0709 },
    ]
    for (number, change) in changes.enumerated() {
      var checkpoint = good
      change(&checkpoint)
      let bytes = checkpoint.encodedHeader()
      #expect(throws: StoreError.self, "change \(number)") {
        _ = try decode(bytes, fileByteCount: good.byteCount + bytes.count - good.headerByteCount)
      }
    }
  }
}
