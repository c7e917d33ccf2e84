import CairnEssentials

/// Records from a seed for `CacheRecordCheck`: as a cache writes them, with flipped bits, cut,
/// spliced, or arbitrary bytes.
package enum CacheRecordFuzz {
  package static func iteration(seed: UInt64) throws -> Tally {
    var random = FuzzRandom(seed: seed)
    let outcome = try CacheRecordCheck.check(try input(&random).encoded)
    var tally = Tally()
    tally["records"] += 1
    tally["records \(outcome.rawValue)"] += 1
    return tally
  }

  private static func input(_ random: inout FuzzRandom) throws -> CacheRecordInput {
    var input = CacheRecordInput()
    input.keyCoder = UInt8(random.below(CacheRecordInput.keyCoderCount))
    input.valueCoder = UInt8(random.below(CacheRecordInput.valueCoderCount))
    input.options = UInt8(random.below(2))
    input.key = try key(of: input.keyCoder, &random)
    input.value = try value(of: input.valueCoder, &random)
    if input.options == 1 || random.once(in: 2) {
      input.metadata = [0xCA, 1, 0, 0, random.once(in: 4) ? 0 : 7, 0, 0, 0]
      input.metadata += random.bytes(count: random.below(20))
    }
    change(&input.key, &random)
    change(&input.metadata, &random)
    change(&input.value, &random)
    input.key = Array(input.key.prefix(255))
    input.metadata = Array(input.metadata.prefix(255))
    if input.key.isEmpty { input.key = [0] }
    return input
  }

  private static func change(_ bytes: inout [UInt8], _ random: inout FuzzRandom) {
    switch random.below(8) {
    case 0: bytes = random.bytes(count: random.below(40))
    case 1: bytes = Array(bytes.prefix(random.below(bytes.count + 1)))
    case 2:
      let place = random.below(bytes.count + 1)
      bytes.insert(contentsOf: bytes.suffix(random.below(bytes.count + 1)), at: place)
    case 3, 4:
      for _ in 0...random.below(4) where !bytes.isEmpty {
        bytes[random.below(bytes.count)] ^= 1 << UInt8(random.below(8))
      }
    default: break
    }
  }

  private static func key(of coder: UInt8, _ random: inout FuzzRandom) throws -> [UInt8] {
    switch coder {
    case 3: random.bytes(count: 8)
    case 4: random.bytes(count: 2)
    case 5: random.bytes(count: 16)
    case 6: try json((0..<random.below(4)).map { _ in text(&random) })
    default: Array(text(&random).utf8)
    }
  }

  private static func value(of coder: UInt8, _ random: inout FuzzRandom) throws -> [UInt8] {
    switch coder {
    case 3: return try json(page(&random, depth: 0))
    case 4:
      var numbers: [String: Int8?] = [:]
      for _ in 0..<random.below(4) {
        numbers[text(&random)] = .some(
          random.once(in: 3) ? nil : Int8(truncatingIfNeeded: random.next()))
      }
      return try json(numbers)
    case 5:
      return random.once(in: 5)
        ? Array("null".utf8) : try json(Double(Int64(bitPattern: random.next())) / 1000)
    case 6: return Array((random.once(in: 2) ? "true" : "false").utf8)
    default:
      // Some are nested more deeply than Foundation can handle.
      if random.once(in: 50) {
        return [UInt8](repeating: UInt8(ascii: "["), count: 400 + random.below(400))
      }
      return Array(text(&random).utf8)
    }
  }

  private static func page(_ random: inout FuzzRandom, depth: Int) -> CodedPage {
    CodedPage(
      title: text(&random), sizes: (0..<random.below(4)).map { Int8($0 * 40) },
      ratio: random.once(in: 2) ? nil : 0.5, parts: [text(&random): random.next()],
      inner: depth > 3 || random.once(in: 2) ? nil : [page(&random, depth: depth + 1)])
  }

  private static func text(_ random: inout FuzzRandom) -> String {
    let parts = ["", "a", "é", "e\u{301}", "\"", "\\", "\0", "👩‍👩‍👧", "[", "{", "/", "\u{2028}"]
    return (0..<random.below(6)).map { _ in random.element(of: parts) }.joined()
  }

  private static func json(_ value: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return Array(try encoder.encode(value))
  }
}
