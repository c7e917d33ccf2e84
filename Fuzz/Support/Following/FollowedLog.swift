import CairnLibC
import Synchronization

/// Words in a file that several processes map. They survive each process.
@safe
package final class SharedNumbers: @unchecked Sendable {
  // SAFETY: the address never changes, and words are atomic.
  private let base: UnsafeMutablePointer<Atomic<UInt64>>
  package let count: Int

  /// - Parameter path: the file, which is created if it is missing.
  package init(path: String, count: Int) throws {
    self.count = count
    let file = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard file >= 0, ftruncate(file, off_t(count * 8)) == 0 else {
      throw FuzzFailure("\(path): errno \(errno)")
    }
    defer { close(file) }
    let address = unsafe mmap(nil, count * 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
    guard let address = unsafe address, unsafe address != MAP_FAILED else {
      throw FuzzFailure("mmap: errno \(errno)")
    }
    unsafe base = address.assumingMemoryBound(to: Atomic<UInt64>.self)
  }

  deinit { unsafe munmap(base, count * 8) }

  /// A process that sees a word also sees everything that was stored before it.
  package subscript(index: Int) -> UInt64 {
    get {
      precondition(index >= 0 && index < count)
      return unsafe base[index].load(ordering: .sequentiallyConsistent)
    }
    set {
      precondition(index >= 0 && index < count)
      unsafe base[index].store(newValue, ordering: .sequentiallyConsistent)
    }
  }
}

/// The progress of the successive writers that others follow.
package struct FollowedWriterLog: Sendable {
  private let words: SharedNumbers
  private static let headCount = 3
  /// The highest number that an operation may have.
  package static let capacity = 1 << 17

  package init(path: String) throws {
    words = try SharedNumbers(path: path, count: Self.headCount + Self.capacity + 1)
  }

  /// The last operation that was begun.
  package var begun: Int {
    get { Int(words[0]) }
    nonmutating set { words[0] = UInt64(newValue) }
  }

  /// The last operation that was acknowledged.
  package var done: Int {
    get { Int(words[1]) }
    nonmutating set { words[1] = UInt64(newValue) }
  }

  /// Whether nothing more is written.
  package var isOver: Bool {
    get { words[2] == 1 }
    nonmutating set { words[2] = newValue ? 1 : 0 }
  }

  /// The result of an operation, once it is known.
  package subscript(number: Int) -> FollowedHistory.Outcome? {
    get {
      let word = words[Self.headCount + number]
      return word == 0 ? nil : FollowedHistory.Outcome(word: word)
    }
    nonmutating set { words[Self.headCount + number] = newValue?.word ?? 0 }
  }
}

/// The record of what the successive processes of one follower see.
package struct FollowerLog: Sendable {
  private let words: SharedNumbers
  private static let capacity = 60_000

  package init(path: String) throws {
    words = try SharedNumbers(path: path, count: 1 + 3 * Self.capacity)
  }

  /// Whether there is room for the next steps of a follower and for its end.
  package var hasRoom: Bool { Int(words[0]) + 200 < Self.capacity }

  package func note(_ event: FollowedEvent) {
    let count = Int(words[0])
    precondition(count < Self.capacity && event.begun < 1 << 24)
    words[1 + 3 * count] =
      event.kind.rawValue | UInt64(event.key) << 4 | UInt64(event.done) << 12
      | UInt64(event.begun) << 36
    words[2 + 3 * count] = UInt64(event.number)
    words[3 + 3 * count] = event.version
    // Last, so that a record interrupted by a kill does not count.
    words[0] = UInt64(count + 1)
  }

  package var events: [FollowedEvent] {
    (0..<Int(words[0])).compactMap { index in
      let word = words[1 + 3 * index]
      guard let kind = FollowedEvent.Kind(rawValue: word & 15) else { return nil }
      return FollowedEvent(
        kind, key: Int(word >> 4 & 0xFF), done: Int(word >> 12 & 0xFF_FFFF),
        begun: Int(word >> 36), number: Int(words[2 + 3 * index]), version: words[3 + 3 * index])
    }
  }
}
