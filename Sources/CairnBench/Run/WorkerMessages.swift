import CairnLibC
import FoundationEssentials

/// The parameters of a worker, passed as JSON in the only argument after `--worker`.
struct WorkerConfiguration: Codable, Sendable {
  var store: StoreKind
  /// The worker's own directory.
  var directory: String
  var keyCount: Int
  var valueByteCount: Int
  var areImages = false
  var seed: UInt64
  /// Whether to wait for the disk to become idle before durable rows.
  var settles = true
  /// The number of threads of the rows that `--threads` applies to.
  var threadCount = 1
  /// The minimum length of a round that overwrites.
  var leastMilliseconds = 0
}

/// A line of JSON to a worker.
enum WorkerRequest: Codable, Sendable {
  /// Do one round of the workload. `milliseconds` bounds it if the workload does not set the number
  /// of operations.
  case run(Workload, round: Int, milliseconds: Int)
  /// Make the store contain every key, if it does not; nothing is measured.
  case prepare
  /// Make the store contain every key, starting from an empty store.
  case refill
  /// Close and reopen the store, then rewrite some of its values: see `Workload.openKilled`.
  case rewrite
  /// Read everything back and compare every byte; errors name the workload.
  case check(Workload)
}

/// A line of JSON from a worker: the results of a round, or why there are none.
struct WorkerReply: Codable, Sendable {
  var round: RoundResult?
  var failure: String?
}

/// One round of one workload in one store.
struct RoundResult: Codable, Sendable {
  var operationCount: Int
  var nanoseconds: UInt64
  var latencies: LatencyHistogram
  var diskByteCount: Int
  var peakResidentByteCount: Int
  /// The bytes that the process passed to the kernel for writing to disk, including writes to
  /// mappings.
  var writtenByteCount: Int?
  /// The memory that the store reports for its index.
  var indexByteCount: Int?
  /// How many requests found a value, in rows with a limit.
  var hitCount: Int?

  var operationsPerSecond: Double { Double(operationCount) * 1e9 / Double(nanoseconds) }
}

/// Lines of JSON over a descriptor.
struct LineChannel {
  let descriptor: Int32
  private var received: [UInt8] = []

  init(descriptor: Int32) { self.descriptor = descriptor }

  func send(_ message: some Encodable) throws {
    var line = [UInt8](try JSONEncoder().encode(message))
    line.append(UInt8(ascii: "\n"))
    try Self.write(line, to: descriptor, path: "pipe")
  }

  /// The next message, or `nil` if the other side has closed the pipe.
  mutating func receive<Message: Decodable>(_ type: Message.Type) throws -> Message? {
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
        let message = try JSONDecoder().decode(type, from: Data(received[..<end]))
        received.removeSubrange(...end)
        return message
      }
      // SAFETY: `read` fills at most the chunk.
      let count = unsafe chunk.withUnsafeMutableBytes {
        unsafe read(descriptor, $0.baseAddress, $0.count)
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return nil }
      received += chunk[..<count]
    }
  }

  static func write(_ bytes: [UInt8], to descriptor: Int32, path: String) throws {
    var written = 0
    while written < bytes.count {
      // SAFETY: `write` reads the rest of the bytes.
      let count = unsafe bytes.withUnsafeBytes {
        let rest = unsafe UnsafeRawBufferPointer(rebasing: $0[written...])
        return unsafe CairnLibC.write(descriptor, rest.baseAddress, rest.count)
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw BenchFailure.lastSystemError("write", path) }
      written += count
    }
  }
}
