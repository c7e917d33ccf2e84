import Cairn
import CairnEssentials
import CairnStore

/// Puts a record into a store and reads it through a cache in every possible way. Whatever its key,
/// metadata and value are, no call may trap. Each call must return what Docs/FileFormat.md and the
/// coders' formats define, or an error with the reason. The policy decides whether the record
/// stays.
///
/// Leaves out the coder of property lists: Foundation's decoder traps on some crafted lists.
package enum CacheRecordCheck {
  /// What happened to a record.
  package enum Outcome: String, Sendable { case read, undecodable, changed, other }

  @discardableResult
  package static func check(_ input: [UInt8]) throws -> Outcome {
    let input = CacheRecordInput(input)
    let value = input.value
    switch Int(input.valueCoder) % CacheRecordInput.valueCoderCount {
    case 0: return try check(input, .bytes, .value(value))
    case 1: return try check(input, .standard, .value(Data(value)))
    case 2:
      return try check(
        input, ValueCoder<String>.string, .optional(String(validating: value, as: UTF8.self)))
    case 3: return try check(input, ValueCoder<CodedPage>.json(), .json(value))
    case 4: return try check(input, ValueCoder<[String: Int8?]>.json(), .json(value))
    case 5: return try check(input, ValueCoder<Double?>.standard, .json(value))
    case 6: return try check(input, ValueCoder<Bool>.standard, .json(value))
    default:
      let turned = ValueCoder<String>.standard.transformed { bytes in
        [UInt8](copying: bytes).reversed()
      } decode: { bytes in
        [UInt8](copying: bytes).reversed()
      }
      return try check(
        input, turned, .optional(String(validating: value.reversed(), as: UTF8.self)))
    }
  }

  private static func check<Value: Equatable & Sendable>(
    _ input: CacheRecordInput, _ values: ValueCoder<Value>, _ value: Decoded<Value>
  ) throws -> Outcome {
    let key = input.key
    let values = values.tagged(input.tag)
    func trial<Key: Hashable & Sendable>(
      _ keys: KeyCoder<Key>, _ key: Decoded<Key>
    ) throws -> Outcome {
      try CacheRecordTrial(input, keys, key, values, value).run()
    }
    func number<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
      if key.count != Number.bitWidth / 8 { return nil }
      return key.reduce(Number(0)) { $0 << 8 | Number(truncatingIfNeeded: $1) }
    }
    switch Int(input.keyCoder) % CacheRecordInput.keyCoderCount {
    case 0:
      return try trial(KeyCoder<String>.standard, .optional(String(validating: key, as: UTF8.self)))
    case 1: return try trial(.bytes, .value(key))
    case 2: return try trial(.standard, .value(Data(key)))
    case 3: return try trial(KeyCoder<Int>.standard, .optional(number(Int.self)))
    case 4: return try trial(KeyCoder<UInt16>.integer, .optional(number(UInt16.self)))
    case 5: return try trial(KeyCoder<UUID>.standard, .optional(uuid(key)))
    default: return try trial(KeyCoder<[String]>.json(), .json(key))
    }
  }

  private static func uuid(_ bytes: [UInt8]) -> UUID? {
    if bytes.count != 16 { return nil }
    var text = ""
    for (index, byte) in bytes.enumerated() {
      if [4, 6, 8, 10].contains(index) { text += "-" }
      text += String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
    }
    return UUID(uuidString: text)
  }
}

/// One record, read through one cache.
private struct CacheRecordTrial<Key: Hashable & Sendable, Value: Equatable & Sendable> {
  let input: CacheRecordInput
  let keyCoder: KeyCoder<Key>
  let key: Decoded<Key>
  let valueCoder: ValueCoder<Value>
  let value: Decoded<Value>
  let disk = SimulatedDisk()
  let clock = ManualClock()

  init(
    _ input: CacheRecordInput, _ keyCoder: KeyCoder<Key>, _ key: Decoded<Key>,
    _ valueCoder: ValueCoder<Value>, _ value: Decoded<Value>
  ) {
    self.input = input
    self.keyCoder = keyCoder
    self.key = key
    self.valueCoder = valueCoder
    self.value = value
  }

  func run() throws -> CacheRecordCheck.Outcome {
    let version = try makeStore()
    if input.key.withBytes({ ReservedKey.contains($0) }) {
      try withCache(drops: true) { cache in
        try require(try cache.keys().isEmpty, "a reserved key is shown")
      }
      return .other
    }
    try withCache(drops: false) { cache in
      try readAll(cache, version)
      if let key = try usableKey(cache) { try read(cache, key, version) }
      try require(try cache.statistics().count == 1, "a record that is to be kept is gone")
    }
    return try withCache(drops: true) { cache in
      let outcome = try dropOrRead(cache, version)
      if let key = try usableKey(cache), case .value(let value) = value {
        // Whatever was there before, a read finds a newly written value.
        try cache.setValue(value, forKey: key, options: .metadata([1, 2]))
        try require(try cache.value(forKey: key) == value, "a value comes back changed")
        try require(try cache.metadata(forKey: key) == [1, 2], "metadata comes back changed")
      }
      return outcome
    }
  }

  /// Creates and closes a store that contains only the record. Returns its version.
  private func makeStore() throws -> UInt64 {
    let process = SimulatedProcess.start(on: disk, seed: 1)
    defer { process.kill() }
    let version = try process.open(.simulated(clock)).setValue(
      input.value, forKey: input.key, options: .metadata(input.metadata), durability: .process)
    try process.close()
    return version
  }

  private func withCache<Result>(
    drops: Bool, _ body: (DiskCache<Key, Value>) throws -> Result
  ) throws -> Result {
    let process = SimulatedProcess.start(on: disk, seed: 2)
    defer { process.kill() }
    var configuration = DiskCacheConfiguration()
    configuration.store = .simulated(clock)
    configuration.dropsUnreadableValues = drops
    let cache = try DiskCache(
      path: SimulatedProcess.path, configuration: configuration, keyCoder: keyCoder,
      valueCoder: valueCoder, environment: process.environment)
    let result = try body(cache)
    try cache.close()
    return result
  }

  /// The key that the cache encodes as the record's key, if any.
  private func usableKey(_ cache: DiskCache<Key, Value>) throws -> Key? {
    guard case .value(let key) = key else { return nil }
    let bytes = try cache.bytes(of: key)
    // One value has several JSON encodings. A cache finds only its own.
    if bytes == input.key { return key }
    try require(
      try cache.value(forKey: key) == nil, "a record is found by a key with other bytes")
    return nil
  }

  /// What a read of the value should return.
  private var expected: (outcome: CacheRecordCheck.Outcome, metadata: [UInt8]) {
    guard case .ofCache(let tag, let rest) = ReadMetadata(input.metadata) else {
      return (.undecodable, [])
    }
    if tag != input.tag { return (.changed, []) }
    switch value {
    case .value: return (.read, rest)
    case .failure: return (.undecodable, rest)
    case .either: return (.other, rest)
    }
  }

  private func judge(_ error: any Error, _ version: UInt64, _ call: String) throws {
    let expected = expected.outcome
    switch error {
    case StoreError.undecodable(version, let reason):
      let isChange = reason.hasSuffix("not \(input.tag)")
      try require(
        isChange ? expected == .changed : expected == .undecodable || expected == .other,
        "\(call): \(error)")
    default: throw FuzzFailure("\(call): \(error)")
    }
  }

  private func check(_ found: Value?, _ call: String) throws {
    let expected = expected.outcome
    try require(expected == .read || expected == .other, "\(call): it is read")
    guard let found else { throw FuzzFailure("\(call): nothing is found") }
    if case .value(let value) = value { try require(found == value, "\(call): another value") }
  }

  private func read(_ cache: DiskCache<Key, Value>, _ key: Key, _ version: UInt64) throws {
    do { try check(cache.value(forKey: key), "value") } catch let error as StoreError {
      try judge(error, version, "value")
    }
    do {
      let entry = try cache.entry(forKey: key)
      try check(entry?.value, "entry")
      try require(entry?.metadata == expected.metadata, "entry: other metadata")
    } catch let error as StoreError { try judge(error, version, "entry") }
    let (outcome, rest) = expected
    do {
      let found = try cache.metadata(forKey: key)
      try require(found == rest && outcome != .changed, "metadata: \(found.debugDescription)")
    } catch let error as StoreError { try judge(error, version, "metadata") }
    do {
      let found = try cache.withValue(forKey: key) { [UInt8](copying: $0) }
      try require(found == input.value && outcome != .changed, "withValue: other bytes")
    } catch let error as StoreError { try judge(error, version, "withValue") }
    let info = try cache.info(forKey: key)
    try require(info?.version == version, "info: another version")
    try require(info?.valueByteCount == input.value.count, "info: another size")
    try require(try cache.contains(key), "contains: it is not there")
  }

  private func readAll(_ cache: DiskCache<Key, Value>, _ version: UInt64) throws {
    let keys = try cache.keys()
    switch key {
    case .value(let key): try require(keys == [key], "keys: others")
    case .failure: try require(keys.isEmpty, "keys: one was made of bytes that are none")
    case .either: break
    }
    var entries: [Entry<Key, Value>] = []
    let skippedCount = try cache.forEachEntry { entry in
      entries.append(entry)
      return .next
    }
    try require(entries.count + skippedCount == 1, "entries: there is one record")
    if keys.isEmpty { return try require(entries.isEmpty, "entries: one without a key") }
    switch (expected.outcome, entries.first) {
    case (.other, _): break
    case (.read, let entry): try check(entry?.value, "entries")
    case (_, let entry): try require(entry == nil, "entries: one that cannot be decoded")
    }
  }

  /// - Returns: what became of the record.
  private func dropOrRead(
    _ cache: DiskCache<Key, Value>, _ version: UInt64
  ) throws -> CacheRecordCheck.Outcome {
    guard let key = try usableKey(cache) else { return .other }
    let outcome = expected.outcome
    let found = try cache.value(forKey: key)
    let isThere = try cache.contains(key)
    try require(isThere == (found != nil), "drop: present but not read, or the reverse")
    if outcome != .other {
      try require((found != nil) == (outcome == .read), "drop: the wrong record was removed")
    }
    return outcome
  }
}
