import CairnStore

/// Encodings from a seed: whole, mutated, mutated with repaired checksums, and arbitrary bytes.
/// Every format target gets all of them.
package enum FormatFuzz {
  /// Resident memory may grow by this much beyond the bytes of an input.
  package static let memoryAllowance = 16 << 20

  /// - Parameter measuresMemory: whether to check the memory of the process, in which nothing else
  ///   may run then.
  package static func iteration(seed: UInt64, measuresMemory: Bool = false) throws -> Tally {
    var random = FuzzRandom(seed: seed)
    var tally = Tally()
    let index = random.below(16)
    let name =
      switch index {
      case 0, 1: "manifest"
      case 2, 3: "segment-header"
      case 4, 5: "record"
      case 6: "checkpoint"
      default: "segment"
      }
    let input = try input(for: name, random: &random)
    let before = ResidentMemory.peak
    let isAccepted = try accepts(name, input)
    if measuresMemory {
      try checkMemory(before: before, after: ResidentMemory.peak, input: input.bytes.count)
    }
    tally["\(name)s"] += 1
    if isAccepted { tally["\(name)s accepted"] += 1 }
    return tally
  }

  /// - Parameters:
  ///   - before: the highest resident memory before an input was decoded.
  ///   - after: the highest after it.
  package static func checkMemory(before: Int, after: Int, input: Int) throws(FuzzFailure) {
    try require(
      after - before <= input + memoryAllowance,
      "memory: \(after - before) bytes more for an input of \(input)")
  }

  /// Whether a target of the format accepts the input as valid.
  private static func accepts(_ name: String, _ input: FormatInput) throws -> Bool {
    switch name {
    case "manifest": try ManifestCheck.check(input.encoded)
    case "segment-header": try SegmentHeaderCheck.check(input.encoded)
    case "record": try RecordCheck.check(input.encoded)
    case "checkpoint": try CheckpointCheck.check(input.encoded)
    default: try SegmentCheck.check(input.encoded)
    }
  }

  /// One input of the kinds above for a target.
  private static func input(for name: String, random: inout FuzzRandom) throws -> FormatInput {
    var options = FormatInput.Options(rawValue: UInt8(truncatingIfNeeded: random.next()))
    let kind = random.below(8)
    if kind == 0 {
      return FormatInput(options: options, bytes: random.bytes(count: random.below(512)))
    }
    var encoding = try encoding(for: name, options: &options, random: &random)
    switch kind {
    case 1:
      options.remove(.repair)
      let isAccepted = try accepts(name, FormatInput(options: options, bytes: encoding.bytes))
      try require(isAccepted || name == "segment", "\(name): a valid encoding is refused")
    case 2, 3:
      options.remove(.repair)
      FieldMutator.mutate(&encoding.bytes, fields: encoding.fields, random: &random)
    default:
      options.insert(.repair)
      if name == "segment", !random.once(in: 4) {
        options = FormatInput.Options(rawValue: options.rawValue & 0x0D)
      }
      FieldMutator.mutate(&encoding.bytes, fields: encoding.fields, random: &random)
    }
    return FormatInput(options: options, bytes: encoding.bytes)
  }

  /// A valid encoding, which must decode to its source.
  private static func encoding(
    for name: String, options: inout FormatInput.Options, random: inout FuzzRandom
  ) throws -> EncodingGenerator.Encoding {
    var generator = EncodingGenerator(random: random.split())
    switch name {
    case "manifest":
      let (manifest, encoding) = generator.manifest()
      let decoded = try Manifest(decoding: encoding.bytes.rawSpan)
      try require(decoded == manifest, "manifest: comes back changed")
      return encoding
    case "segment-header":
      let (header, encoding) = generator.segmentHeader()
      let decoded = try SegmentHeader(decoding: encoding.bytes.rawSpan, file: "seg-x")
      try require(decoded == header, "header: comes back changed")
      return encoding
    case "record":
      var header = generator.recordHeader()
      let encoding = generator.encode(
        &header, at: RecordCheck.place(options), seed: RecordCheck.segment.recordSeed)
      let decoded = RecordHeader(
        decoding: encoding.bytes.rawSpan, limit: encoding.bytes.count)
      try require(decoded == header, "record: comes back changed")
      return encoding
    case "checkpoint":
      let base = try CheckpointBase.of(options)
      return EncodingGenerator.Encoding(bytes: base.checkpoint, fields: base.fields)
    default:
      return generator.segments()
    }
  }
}
