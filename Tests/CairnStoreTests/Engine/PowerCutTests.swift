import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import KillWriter
import Testing

/// A real journalling filesystem is cut off while a process writes with several threads and
/// durability classes. Everything acknowledged as durable must exist, and no write of a thread
/// beyond a gap.
@Suite("Power cuts of ext4")
struct PowerCutTests {
  static let threads = 4

  typealias State = [String: [UInt8]]

  @Test(
    "Nothing durable is lost over 12 cuts in a row",
    .enabled(if: Ext4Image.missing == nil, "\(Ext4Image.missing ?? "")"))
  func cuts() throws {
    var generator = Seed.generator("power cuts")
    let disk = try Ext4Image()
    let path = disk.path + "/store"
    var states = [State](repeating: [:], count: Self.threads)
    var (durableCount, lostCount) = (0, 0)
    for round in 0..<12 {
      let seed = generator.next() >> 1
      let limit = Int.random(in: 1..<300, using: &generator)
      let process = try KillWriterProcess(["write", path, "\(seed)", "\(Self.threads)", "1"])
      var bytes: [UInt8] = []
      var countBeforeCut: Int?
      while case let more = try process.read(), !more.isEmpty {
        bytes += more
        if countBeforeCut == nil, bytes.count / Acknowledgement.byteCount >= limit {
          countBeforeCut = bytes.count
          try disk.cut()
        }
      }
      // An error ends the process, or a page that is not available.
      let status = try process.wait()
      try #require(countBeforeCut != nil && (status == 3 || status == 128 + SIGBUS), "\(status)")
      var (last, lastDurable) = (
        [Int](repeating: 0, count: Self.threads), [Int](repeating: 0, count: Self.threads)
      )
      for start in stride(from: 0, to: bytes.count - 7, by: Acknowledgement.byteCount) {
        let acknowledgement = Acknowledgement(decoding: bytes[start..<(start + 8)])
        let thread = acknowledgement.thread
        last[thread] = acknowledgement.number
        let operation = Workload(seed: seed, thread: thread).operation(acknowledgement.number)
        // A sync during the cut may succeed and leave zeros: the kernel drops the error of what it
        // can no longer record in the journal. A real power cut has no such later moment.
        if case .durable = operation.durability, start < countBeforeCut ?? 0 {
          lastDurable[thread] = acknowledgement.number
        }
      }
      let comment: Comment = "cut \(round), seed \(seed), \(last); \(Seed.comment)"
      try disk.mountAgain()
      guard KillTests.FileNames.hasManifest(path) else {
        #expect(lastDurable == [0, 0, 0, 0], comment)
        continue
      }
      // A store recognises a power cut by a different boot, which did not happen here.
      // No job may hold the disk when it is unmounted.
      let background = ManualBackgroundQueue()
      defer { background.discardAll() }
      let store = try Store(
        path, StoreConfiguration(), fileSystem: FaultyFileSystem(bootIdentifier: otherBoot),
        background: background)
      let contents = try store.contents()
      for thread in 0..<Self.threads {
        let found = contents.filter { $0.key.hasPrefix(Workload.prefix(ofThread: thread)) }
        let workload = Workload(seed: seed, thread: thread)
        // The write after the last acknowledged one may have happened.
        var state = states[thread]
        var fits: [Int] = []
        for number in 0...(last[thread] + 1) {
          if number > 0 { KillTests.apply(workload.operation(number), to: &state) }
          if state == found { fits.append(number) }
        }
        let kept = try #require(fits.last, comment)
        #expect(kept >= lastDurable[thread], comment)
        durableCount += lastDurable[thread]
        lostCount += max(0, last[thread] - kept)
        states[thread] = found
      }
      #expect(try store.statistics().recovery.damage == [], comment)
      try store.close()
      #expect(try Store.verify(path: path).errors == [], comment)
    }
    // The cuts were real: some of them lost data that was not durable, and some data was durable.
    #expect(durableCount > 100)
    #expect(lostCount > 0)
  }
}
