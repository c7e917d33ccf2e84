import CairnStore
import Foundation
import FuzzSupport
import Testing

/// Runs a closure once, at the next look at the clock.
private final class InterruptingClock: WallClock {
  private let interruption = Lock<(@Sendable () -> Void)?>(nil)

  func interrupt(_ body: @escaping @Sendable () -> Void) { interruption.withLock { $0 = body } }

  func now() -> Timestamp {
    interruption.withLock { $0.take() }?()
    return ManualClock.start
  }
}

/// Whether an address of this process lies in a mapping of a file below a path.
private func isMapped(_ address: UInt, below path: String) throws -> Bool {
  // The status of the file shows no size, so read to its end.
  let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/self/maps"))
  defer { try? file.close() }
  let maps = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
  return maps.split(separator: "\n").contains {
    let ends = $0.prefix { $0 != " " }.split(separator: "-").compactMap { UInt($0, radix: 16) }
    return ends.count == 2 && ends[0] <= address && address < ends[1] && $0.contains(path)
  }
}

@Suite("Bytes that a follower reads in place")
final class FollowedBytesTests {
  private let directory: TemporaryDirectory
  private let queue = ManualBackgroundQueue()

  init() throws { directory = try TemporaryDirectory() }

  @Test("Bytes read in place stay mapped if the view is replaced before the lookup")
  func replacedBeforeLookup() throws {
    let writer = try Store.announcing(directory.store, background: queue)
    let clock = InterruptingClock()
    let value = [UInt8](repeating: 7, count: 5000)
    for _ in 0..<3 {
      try writer.setValue(value, forKey: "key")
      let follower = try Store.following(
        directory.store, .manual, .small { $0.clock = clock })
      clock.interrupt {
        #expect(throws: Never.self) {
          try writer.removeAll()
          try follower.catchUp()
        }
        // Another test's pin may delay the freeing.
        for _ in 0..<20 {
          Reclamation.reclaim()
          usleep(1000)
        }
      }
      let isSame = try follower.withValue(forKey: "key") { bytes in
        let address = unsafe bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        let isThere = try isMapped(address, below: directory.store)
        try #require(isThere)
        return bytes.copied() == value
      }
      #expect(isSame == true)
      #expect(try follower.value(forKey: "key") == nil)
      try follower.close()
    }
  }

  @Test(
    "Bytes that are read in place stay unchanged while their view is replaced and the store is closed"
  )
  func inPlace() throws {
    let writer = try Store.announcing(directory.store, background: queue)
    let value = [UInt8](repeating: 7, count: 100_000)
    try writer.setValue(value, forKey: "a")
    let system = FaultyFileSystem()
    let follower = try Store.following(directory.store, fileSystem: system)
    let isSame = try follower.withValue(forKey: "a") { bytes in
      try writer.removeAll()
      queue.runAll()
      try writer.setValue("other", forKey: "b")
      try writer.compact()
      try follower.catchUp()
      #expect(try follower.count() == 1)
      try follower.close()
      Reclamation.reclaim()
      return [UInt8](copying: bytes) == value
    }
    #expect(isSame == true)
    try writer.close()
    system.awaitClosing(downTo: 2)
    #expect(system.mappingCount == 0)
  }
}
