package import CairnStore
import FuzzSupport

/// The writes of one thread. A seed determines them, so a test that kills the writer knows from the
/// number of acknowledgements what must exist.
package struct Workload: Sendable {
  package var seed: UInt64
  package var thread: Int

  package init(seed: UInt64, thread: Int) {
    self.seed = seed
    self.thread = thread
  }

  /// One write of a key, or one batch.
  package struct Operation: Sendable {
    package var changes: [(key: String, value: [UInt8]?)]
    package var durability: Durability
    package var isBatch: Bool
  }

  /// The prefix of a thread's keys. No two threads share a key.
  package static func prefix(ofThread thread: Int) -> String { "thread \(thread) " }

  /// The operation with a number, from 1.
  package func operation(_ number: Int) -> Operation {
    var random = FuzzRandom(seed: seed ^ UInt64(thread) << 48 ^ UInt64(number) << 16)
    func key() -> String { Self.prefix(ofThread: thread) + "key \(random.next() % 16)" }
    func change() -> (key: String, value: [UInt8]?) {
      let key = key()
      switch random.next() % 128 {
      case 0..<20: return (key, nil)
      case 20: return (key, value(for: key, number: number, byteCount: 70_000))
      case 21..<25: return (key, [])
      default: return (key, value(for: key, number: number, byteCount: Int(random.next() % 700)))
      }
    }
    let isBatch = random.next() % 6 == 0
    let changes = (0..<(isBatch ? 1 + random.next() % 6 : 1)).map { _ in change() }
    let durability: Durability =
      switch (thread % 3, random.next() % 8) {
      case (0, _): .process
      case (1, 0): .durable
      case (1, _): .interval(.milliseconds(5))
      default: random.next() % 2 == 0 ? .durable : .process
      }
    return Operation(changes: changes, durability: durability, isBatch: isBatch)
  }

  private func value(for key: String, number: Int, byteCount: Int) -> [UInt8] {
    var bytes = Array("\(seed) \(number) \(key) ".utf8)
    while bytes.count < byteCount { bytes += bytes }
    return Array(bytes.prefix(byteCount))
  }
}

/// An acknowledgement as sent through the pipe.
package struct Acknowledgement: Sendable {
  package static let byteCount = 8
  package var thread: Int
  package var number: Int

  package init(thread: Int, number: Int) {
    self.thread = thread
    self.number = number
  }

  package init(decoding bytes: some Collection<UInt8>) {
    let word = bytes.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    thread = Int(word >> 48)
    number = Int(word & 0xFFFF_FFFF_FFFF)
  }

  package var encoded: [UInt8] {
    let word = UInt64(thread) << 48 | UInt64(number)
    return (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) }
  }
}
