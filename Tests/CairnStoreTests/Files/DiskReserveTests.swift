import Foundation
import FuzzSupport
import Glibc
import Testing

@testable import CairnStore

@Suite("What is kept on the disk for removals")
struct DiskReserveTests {
  private let scene: RegressionScene
  private let directory: Directory

  init() throws {
    scene = try RegressionScene()
    try Store(scene.path).close()
    directory = try Directory(
      path: scene.path, fileSystem: SystemFileSystem(), readOnly: false)
  }

  private var byteCount: Int {
    get throws { try Int(scene.bytes(of: FileName.reserve).count) }
  }

  @Test("One half is given to removals, once, also by the processes that come after")
  func half() throws {
    let log = 20 << 20
    let reserve = DiskReserve(directory: directory, isUsed: true)
    try reserve.ensure(forLogOf: log)
    #expect(try byteCount == 1 << 20)
    #expect(reserve.giveHalf(forLogOf: log))
    #expect(!reserve.giveHalf(forLogOf: log))
    #expect(try byteCount == 512 << 10)
    // It may be that of a smaller log. A quarter is left in any case.
    for _ in 0..<3 { _ = DiskReserve(directory: directory, isUsed: true).giveHalf(forLogOf: log) }
    #expect(try byteCount == 256 << 10)
    try reserve.ensure(forLogOf: log)
    #expect(try byteCount == 1 << 20)
  }

  @Test("A log that has just grown beyond a step has half of what it has to give")
  func step() throws {
    // `FaultFuzzer --full-disk --seed 73004528`: nothing could be removed, and a trim found no room.
    let reserve = DiskReserve(directory: directory, isUsed: true)
    try reserve.ensure(forLogOf: 1 << 20)
    #expect(try byteCount == 128 << 10)
    #expect(reserve.giveHalf(forLogOf: 1 << 20 | 4096))
    #expect(try byteCount == 64 << 10)
    var run = FullDiskTrimRun(seed: 73_004_528)
    try run.run()
  }

  @Test("Where there is no room for what a larger log needs, it is made whole for the one there is")
  func refusal() throws {
    // `FaultFuzzer --full-disk --seed 74704885`: a compaction had left one half, a put was refused, others took the
    // rest of the disk, and nothing could be removed.
    let log = 1_006_440
    let directory = try Directory(
      path: scene.path, fileSystem: scene.fileSystem, readOnly: false)
    let reserve = DiskReserve(directory: directory, isUsed: true)
    try reserve.ensure(forLogOf: log)
    reserve.lend()
    reserve.takeBack(forLogOf: log, isForRemoval: true)
    #expect(try byteCount == 64 << 10)
    let refusal = Gate()
    refusal.open()
    scene.fileSystem.setHook { event in
      event.call == .allocate && refusal.passOnce() ? ENOSPC : nil
    }
    #expect(throws: StoreError.self) { try reserve.ensure(forLogOf: log, adding: 64 << 10) }
    #expect(try byteCount == 128 << 10)
    #expect(reserve.isShort)
  }

  @Test("A compaction that no removal waits for leaves it whole")
  func takenBack() throws {
    let reserve = DiskReserve(directory: directory, isUsed: true)
    try reserve.ensure(forLogOf: 20 << 20)
    reserve.lend()
    reserve.takeBack(forLogOf: 20 << 20, isForRemoval: false)
    #expect(try byteCount == 1 << 20)
    // `FaultFuzzer --full-disk --seed 74710820`: others filled the disk after the refusal, and a trim
    // found no room.
  }

  @Test("A large value that is refused does not leave it larger")
  func refusedValue() throws {
    let store = try scene.open()
    for number in 0..<300 { try store.setValue([UInt8].filled(1000), forKey: "key\(number)") }
    #expect(try byteCount == 128 << 10)
    scene.fileSystem.setHook { event in
      event.call == .allocate && event.byteCount > 20 << 20 ? ENOSPC : nil
    }
    #expect(throws: StoreError.self) {
      try store.setValue([UInt8].filled(30 << 20), forKey: "large")
    }
    #expect(try byteCount == 128 << 10)
    try store.close()
  }

  @Test("It is as large as the log needs it when a write returns, however large that was")
  func growth() throws {
    let store = try Store(scene.path, .small { $0.segmentByteLimit = 256 << 10 })
    for byteCount in [1000, 30_000, 200_000, 30 << 20, 1000] {
      try store.setValue([UInt8].filled(byteCount), forKey: "key \(byteCount)")
      let log = store.engine.log.withLock { appender in
        appender.segments.reduce(0) { $0 + $1.allocatedByteCount }
      }
      // A store that never grew has none.
      if log > Appender.firstAllocation {
        #expect(try self.byteCount >= DiskReserve.byteCount(forLogOf: log), "\(byteCount)")
      }
    }
  }
}
