import CairnStore
import FuzzSupport

/// What the store should contain: for each key, the operation that wrote its value.
///
/// With a limit, the store evicts entries that have not been used for long. The model does not know
/// exactly which ones. The most recently accessed entries, up to 90 % of the limit, must exist.
struct Model {
  private let plan: Plan
  private let countLimit: Int?
  /// The number of the operation, or -1 if the key must be absent.
  private(set) var writer: [Int]
  private var written: [Int]
  private var accessed: [Int]
  private var accessCount = 0
  private var isShortLived: [Bool]
  /// Whether a byte of the store is damaged, and the key whose record it turned out to be in.
  var hasDamage = false
  private var damagedKey: Int?

  init(_ plan: Plan, countLimit: Int?) {
    self.plan = plan
    self.countLimit = countLimit
    writer = Array(repeating: -1, count: plan.keyCount)
    written = Array(repeating: 0, count: plan.keyCount)
    accessed = written
    isShortLived = Array(repeating: false, count: plan.keyCount)
  }

  mutating func apply(_ number: Int) {
    switch plan[number] {
    case .put(let key): write(key, number, isShortLived: false)
    case .putShortLived(let key): write(key, number, isShortLived: true)
    case .remove(let key): writer[key] = -1
    case .batch(let keys): for key in keys { write(key, number, isShortLived: false) }
    case .get: break
    }
  }

  private mutating func write(_ key: Int, _ number: Int, isShortLived: Bool) {
    accessCount += 1
    writer[key] = number
    written[key] = accessCount
    accessed[key] = accessCount
    self.isShortLived[key] = isShortLived
  }

  /// Whether a read of a key may find damage: one record is damaged.
  mutating func mayBeDamaged(_ key: Int) -> Bool {
    guard hasDamage, damagedKey == nil || damagedKey == key else { return false }
    damagedKey = key
    return true
  }

  mutating func noteRead(_ key: Int) {
    accessCount += 1
    accessed[key] = accessCount
  }

  /// A crash loses access times.
  mutating func forgetReads() { accessed = written }

  private func mayBeAbsent(_ key: Int) -> Bool {
    if writer[key] < 0 || isShortLived[key] { return true }
    guard let countLimit else { return false }
    return accessCount - accessed[key] >= countLimit * 9 / 10
  }

  /// Checks what a read of a key returned. A value found absent must not reappear.
  mutating func check(_ key: Int, _ value: [UInt8]?) throws {
    guard let value else {
      guard mayBeAbsent(key) || mayBeDamaged(key) else {
        throw FuzzFailure("key \(key) is lost, written by operation \(writer[key])")
      }
      writer[key] = -1
      return
    }
    guard writer[key] >= 0 else { throw FuzzFailure("key \(key) has reappeared") }
    guard value == plan.value(of: writer[key], for: key) else {
      let number = value.prefix(8).reversed().reduce(0) { $0 << 8 | Int($1) }
      throw FuzzFailure(
        "key \(key) has the value of operation \(number) instead of that of \(writer[key])")
    }
  }

  /// Determines whether the operation that the kill interrupted took effect, wholly or not at all.
  mutating func settle(_ number: Int, in store: Store) throws -> Bool {
    let values = try plan[number].written.map { ($0, try store.value(forKey: plan.keyBytes($0))) }
    // A removal of an absent key, or a put with a short lifetime, leaves no trace.
    var hasHappened =
      switch plan[number] {
      case .remove, .putShortLived: values.allSatisfy { $0.1 == nil }
      default: false
      }
    if values.contains(where: { $0.1 == plan.value(of: number, for: $0.0) }) { hasHappened = true }
    if hasHappened { apply(number) }
    for (key, value) in values { try check(key, value) }
    return hasHappened
  }

  /// Checks all contents of the store.
  mutating func checkAll(_ store: Store) throws {
    var found = Set<Int>()
    var values: [(Int, [UInt8])] = []
    do {
      try store.forEachEntry { entry in
        let name = String(decoding: entry.key, as: UTF8.self)
        guard let key = Int(name.dropFirst("churn/key/".count)), key < plan.keyCount else {
          throw FuzzFailure("a key that was never written: \(name)")
        }
        guard found.insert(key).inserted else { throw FuzzFailure("key \(key) twice") }
        values.append((key, entry.value))
        if values.count == 1000 {
          for (key, value) in values { try check(key, value) }
          values = []
        }
        return .next
      }
    } catch let error as StoreError {
      // An iteration skips a damaged entry, and throws its error at the end.
      guard case .corrupt = error, hasDamage else { throw error }
    }
    for (key, value) in values { try check(key, value) }
    for key in 0..<plan.keyCount where !found.contains(key) { try check(key, nil) }
    if let countLimit, found.count > countLimit {
      throw FuzzFailure("\(found.count) entries, more than \(countLimit)")
    }
  }
}
