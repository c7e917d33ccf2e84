import CairnLibC
import Synchronization

/// The threads' record of what they do, in a mapped file, so that it survives the process.
///
/// Each thread has its own part, to which it alone writes. An operation is recorded before its
/// call, and its end after the call returns. So after a kill, each operation is complete, pending
/// or never called. The operations of one call are consecutive. Each has the place of the first
/// one, which is the call's number.
// SAFETY: `@unchecked Sendable` because each thread has its own part, which is read after the
// threads have ended.
@safe
package final class HistoryLog: @unchecked Sendable {
  private static let wordsPerEntry = 8

  private let words: UnsafeMutablePointer<UInt64>
  private let threadCount: Int
  /// How many operations a thread may record.
  package let capacity: Int
  /// Enough for what a `HistoryPlan` makes a thread do.
  package static let usualCapacity = 128

  private var byteCount: Int { threadCount * (capacity * Self.wordsPerEntry + 1) * 8 }

  /// - Parameter path: a file that is created if it is missing, or `nil` for memory of this
  ///   process.
  package init(path: String?, threadCount: Int, capacity: Int) throws {
    self.threadCount = threadCount
    self.capacity = capacity
    let size = threadCount * (capacity * Self.wordsPerEntry + 1) * 8
    var file: Int32 = -1
    if let path {
      file = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
      guard file >= 0, ftruncate(file, off_t(size)) == 0 else {
        throw FuzzFailure("\(path): errno \(errno)")
      }
    }
    let flags = path == nil ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED
    let address = unsafe mmap(nil, size, PROT_READ | PROT_WRITE, flags, file, 0)
    if file >= 0 { close(file) }
    guard let address = unsafe address, unsafe address != MAP_FAILED else {
      throw FuzzFailure("mmap: errno \(errno)")
    }
    unsafe words = address.bindMemory(to: UInt64.self, capacity: size / 8)
  }

  deinit { unsafe munmap(words, byteCount) }

  /// Clears the log.
  package func clear() { unsafe words.update(repeating: 0, count: byteCount / 8) }

  private func part(_ thread: Int) -> UnsafeMutablePointer<UInt64> {
    unsafe words + thread * (capacity * Self.wordsPerEntry + 1)
  }

  package static func now() -> UInt64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  /// Whether a thread has begun anything.
  package var hasBegun: Bool { (0..<threadCount).contains { unsafe part($0)[0] > 0 } }

  /// How many more operations a thread may record.
  package func room(of thread: Int) -> Int { capacity - Int(unsafe part(thread)[0]) }

  /// Records the next call, for one key or several.
  ///
  /// - Returns: its place.
  package func begin(
    _ thread: Int, _ actions: [(key: Int, HistoryOperation.Action)],
    _ unity: HistoryCall.Unity = .apart
  ) -> Range<Int> {
    let part = unsafe part(thread)
    let first = Int(unsafe part[0])
    for (place, (key, action)) in actions.enumerated() {
      let entry = unsafe part + 1 + (first + place) * Self.wordsPerEntry
      let (kind, value, expected): (UInt64, UInt64, UInt64) =
        switch action {
        case .write(let value, let ending): (1, value, ending.rawValue)
        case .erase: (2, 0, 0)
        case .remove: (3, 0, 0)
        case .read: (4, 0, 0)
        case .compareAndSet(let expected, let value): (5, value, expected)
        case .compareAndRemove(let expected): (6, 0, expected)
        case .take: (7, 0, 0)
        case .setLifetime: (8, 0, 0)
        case .passTime: (9, 0, 0)
        }
      unsafe entry[2] = kind | unity.rawValue << 8 | UInt64(key) << 16 | UInt64(first) << 32
      unsafe entry[3] = value
      unsafe entry[4] = expected
      unsafe entry[5] = 0
      unsafe entry[0] = Self.now()
    }
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    unsafe part[0] = UInt64(first + actions.count)
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    return first..<first + actions.count
  }

  /// Records the outcomes, in the order of the actions.
  package func end(_ thread: Int, _ entries: Range<Int>, _ outcomes: [HistoryOperation.Outcome]) {
    let now = Self.now()
    for (index, outcome) in zip(entries, outcomes) {
      let entry = unsafe part(thread) + 1 + index * Self.wordsPerEntry
      let (kind, first, second): (UInt64, UInt64, UInt64) =
        switch outcome {
        case .pending: (0, 0, 0)
        case .done: (1, 0, 0)
        case .stored(let version): (2, version, 0)
        case .removed(let wasThere): (3, wasThere ? 1 : 0, 0)
        case .found(let value, let version): (4, value, version)
        case .mismatch(let version): (5, version, 0)
        case .extended(let wasThere): (6, wasThere ? 1 : 0, 0)
        }
      unsafe entry[6] = first
      unsafe entry[7] = second
      unsafe entry[1] = now
      atomicMemoryFence(ordering: .sequentiallyConsistent)
      unsafe entry[5] = kind
    }
  }

  /// Everything that was recorded.
  package func calls() throws -> [HistoryCall] {
    var calls: [HistoryCall] = []
    for thread in 0..<threadCount {
      let count = Int(unsafe part(thread)[0])
      var next = 0
      while next < count {
        let first = unsafe part(thread) + 1 + next * Self.wordsPerEntry
        guard unsafe first[2] >> 32 == UInt64(next),
          let unity = HistoryCall.Unity(rawValue: unsafe first[2] >> 8 & 0xFF)
        else { throw FuzzFailure("the log of a history has an entry of no call") }
        var operations: [HistoryOperation] = []
        while next < count,
          unsafe part(thread)[1 + next * Self.wordsPerEntry + 2] >> 32
            == first[2] >> 32
        {
          operations.append(try operation(thread, next))
          next += 1
        }
        calls.append(HistoryCall(unity, Self.whole(operations)))
      }
    }
    return calls
  }

  /// The operations of one call whose outcomes may have been partly recorded when the process died.
  /// The call had already returned, so none of its operations is pending.
  private static func whole(_ operations: [HistoryOperation]) -> [HistoryOperation] {
    guard let returned = operations.first(where: { !$0.isPending }) else { return operations }
    var whole: [HistoryOperation] = []
    for var operation in operations {
      if operation.isPending {
        // The read's outcome was not recorded.
        if operation.action == .read { continue }
        operation.outcome = .done
        operation.end = returned.end
      }
      whole.append(operation)
    }
    return whole
  }

  private func operation(_ thread: Int, _ index: Int) throws -> HistoryOperation {
    let entry = unsafe part(thread) + 1 + index * Self.wordsPerEntry
    let action: HistoryOperation.Action =
      switch unsafe entry[2] & 0xFF {
      case 1: .write(value: unsafe entry[3], ending: unsafe .init(rawValue: entry[4]) ?? .never)
      case 2: .erase
      case 3: .remove
      case 4: .read
      case 5: .compareAndSet(expecting: unsafe entry[4], value: unsafe entry[3])
      case 6: .compareAndRemove(expecting: unsafe entry[4])
      case 7: .take
      case 8: .setLifetime
      case 9: .passTime
      default: throw FuzzFailure("the log of a history has an entry of no kind")
      }
    let outcome: HistoryOperation.Outcome =
      switch unsafe entry[5] {
      case 1: .done
      case 2: .stored(version: unsafe entry[6])
      case 3: .removed(unsafe entry[6] == 1)
      case 4: .found(value: unsafe entry[6], version: unsafe entry[7])
      case 5: .mismatch(version: unsafe entry[6])
      case 6: .extended(unsafe entry[6] == 1)
      default: .pending
      }
    return HistoryOperation(
      action, outcome, begin: unsafe entry[0],
      end: outcome == .pending ? .max : unsafe entry[1], thread: thread,
      key: Int(unsafe entry[2] >> 16 & 0xFFFF))
  }
}
