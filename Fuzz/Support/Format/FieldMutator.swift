/// A number in an encoding.
package struct EncodedField: Sendable, Hashable {
  package var offset: Int
  package var size: Int

  package init(_ offset: Int, _ size: Int) {
    self.offset = offset
    self.size = size
  }
}

/// Changes encodings at sensitive places: lengths, counts, flags, versions, numbers near their
/// bounds.
package enum FieldMutator {
  /// Makes one to four changes.
  package static func mutate(
    _ bytes: inout [UInt8], fields: [EncodedField], random: inout FuzzRandom
  ) {
    for _ in 0...random.below(4) {
      let inside = fields.filter { $0.offset + $0.size <= bytes.count }
      if !inside.isEmpty, !random.once(in: 4) {
        change(&bytes, random.element(of: inside), &random)
      } else {
        reshape(&bytes, &random)
      }
    }
  }

  private static func change(
    _ bytes: inout [UInt8], _ field: EncodedField, _ random: inout FuzzRandom
  ) {
    let old = bytes.number(at: field.offset, count: field.size)
    let number: UInt64 =
      switch random.below(6) {
      case 0: old &+ 1
      case 1: old &- 1
      case 2: old ^ 1 << UInt64(random.below(8 * field.size))
      case 3: UInt64(random.below(bytes.count + 2))
      case 4: random.next()
      default: boundary(&random)
      }
    bytes.set(number, at: field.offset, count: field.size)
  }

  /// 0, 1, the highest number, and one less or more than powers of two: where sums wrap and where
  /// the format has limits.
  private static func boundary(_ random: inout FuzzRandom) -> UInt64 {
    switch random.below(4) {
    case 0: 0
    case 1: UInt64(random.below(3))
    case 2: .max &- UInt64(random.below(9))
    default: (1 << UInt64(random.below(64))) &+ UInt64(random.below(3)) &- 1
    }
  }

  private static func reshape(_ bytes: inout [UInt8], _ random: inout FuzzRandom) {
    if bytes.isEmpty {
      bytes = random.bytes(count: 1 + random.below(64))
      return
    }
    let start = random.below(bytes.count)
    let end = min(bytes.count, start + 1 + random.below(random.once(in: 4) ? bytes.count : 32))
    switch random.below(8) {
    case 0: bytes.removeLast(bytes.count - start)
    case 1: bytes.removeSubrange(start..<end)
    case 2: bytes.insert(contentsOf: bytes[start..<end], at: random.below(bytes.count))
    case 3: for index in start..<end { bytes[index] = 0 }
    case 4: bytes.replaceSubrange(start..<end, with: random.bytes(count: end - start))
    case 5: bytes += [UInt8](repeating: 0, count: random.below(128))
    case 6:
      let chunk = Array(bytes[start..<end])
      let target = random.below(bytes.count - chunk.count + 1)
      bytes.replaceSubrange(target..<(target + chunk.count), with: chunk)
    default: bytes[start] ^= 1 << UInt8(random.below(8))
    }
  }
}
