import Cairn
import CommandText

/// `increment`: adds to a counter.
enum IncrementCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let key = try invocation.key(at: 1)
    let lifetime = try invocation.duration(of: .lifetime)
    var amount: Int64 = 1
    if invocation.operands.count > 2 {
      let word = invocation.operands[2]
      guard let number = Int64(String(decoding: word, as: UTF8.self)) else {
        throw invocation.usage("N must be a whole number, not \(DisplayText.line(word))")
      }
      amount = number
    }
    let number = try location.write(StoreConfiguration()) { store in
      do throws(StoreError) {
        return try store.increment(forKey: key, by: amount, lifetime: lifetime.map { .after($0) })
      } catch { throw CommandFailure(error, key: key) }
    }
    try show(number, ofKey: key, invocation, on: console)
  }

  /// The number of a counter, or `nil` if the key does not exist.
  static func number(ofKey key: [UInt8], in store: Store) throws -> Int64? {
    do throws(StoreError) { return try store.counter(forKey: key) } catch {
      throw CommandFailure(error, key: key)
    }
  }

  /// Shows a counter.
  static func show(
    _ number: Int64, ofKey key: [UInt8], _ invocation: Invocation, on console: Console
  ) throws {
    try console.print(
      invocation.has(.json)
        ? JSON.object([JSON.member("key", key), ("number", .integer(Int(number)))]).text
        : String(number))
  }
}
