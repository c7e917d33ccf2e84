import CairnStore
import Foundation
import Synchronization

/// A follower during whose calls the writer may take some steps. The follower has its own thread,
/// and the two threads take turns.
final class SlowFollower: @unchecked Sendable {
  // SAFETY: at any time, one of the two threads waits for the other.
  private let follower: SimulatedFollower
  private let toFollower = DispatchSemaphore(value: 0)
  private let toWriter = DispatchSemaphore(value: 0)
  private var random: FuzzRandom
  private var (now, isNew) = (Timestamp(millisecondsSinceEpoch: 0), false)
  private var result: Result<StoreContents, any Error>?
  private(set) var isReading = false
  /// Whether the follower finishes without a pause.
  private var hurries = false
  private var isOver = false
  private let pages: DelayedPages

  init(_ follower: SimulatedFollower, _ random: FuzzRandom) {
    self.follower = follower
    self.random = random
    pages = DelayedPages(follower.between)
    follower.between = pages
    pages.whileOthersRun = { [unowned self] in pause() }
    let thread = Thread { [self] in run() }
    thread.stackSize = 8 << 20
    thread.start()
  }

  private func run() {
    while true {
      toFollower.wait()
      if isOver { break }
      pages.refresh()
      result = Result { try follower.contents(now: now, isNew: isNew, isSnapshot: true) }
      isReading = false
      toWriter.signal()
    }
    pages.whileOthersRun = {}
    follower.close()
    toWriter.signal()
  }

  /// Sometimes lets the writer run.
  private func pause() {
    if hurries || isOver || !isReading || !random.once(in: 3) { return }
    toWriter.signal()
    toFollower.wait()
  }

  // MARK: The writer's thread

  func begin(now: Timestamp, isNew: Bool) {
    (self.now, self.isNew) = (now, isNew)
    isReading = true
  }

  /// Lets the follower continue until its next pause, or its end.
  ///
  /// - Returns: what it read, once it has ended.
  func goOn() -> Result<StoreContents, any Error>? {
    toFollower.signal()
    toWriter.wait()
    return isReading ? nil : result
  }

  /// Lets the follower finish, if it is reading.
  func finish() -> Result<StoreContents, any Error>? {
    guard isReading else { return nil }
    hurries = true
    defer { hurries = false }
    return goOn()
  }

  func end() {
    isOver = true
    toFollower.signal()
    toWriter.wait()
  }
}

/// A file system in which other processes run before and after each call, and between loads of
/// words of the page FOLLOW. A mapping of it shows what it contained at the time of the last call,
/// or for some words what it contained before others ran.
///
/// Such a word keeps its old value until the next call. Until then, the follower loads the words
/// once, in order, as if others had run between the loads.
private final class DelayedPages: FileSystemDecorator, @unchecked Sendable {
  // SAFETY: used by one thread at a time, except `unmap`, which only records the call under a lock.
  let base: any FileSystem
  var whileOthersRun: () -> Void = {}
  private var random = FuzzRandom(seed: 1)
  private var pageDescriptors: Set<Int32> = []
  /// The address of the file's own page, by the address of the follower's page.
  private let pages = Lock<[UInt: UInt]>([:])
  /// The words in the order in which they are loaded.
  private static let loadOrder = [
    FollowPageLayout.positionOffset, FollowPageLayout.generationOffset,
    FollowPageLayout.sessionOffset,
  ]

  init(_ base: any FileSystem) { self.base = base }

  private func passing<Value>(
    _ body: () throws(SystemError) -> Value
  ) throws(SystemError) -> Value {
    whileOthersRun()
    let result: Value
    do throws(SystemError) { result = try body() } catch {
      refresh()
      throw error
    }
    let before = words
    whileOthersRun()
    refresh(keeping: before)
    return result
  }

  // MARK: The pages

  private typealias Page = UnsafeMutablePointer<Atomic<UInt64>>

  private static func word(_ page: UInt, _ offset: Int) -> UInt64 {
    guard let page = unsafe Page(bitPattern: page) else { return 0 }
    return unsafe page[offset / 8].load(ordering: .acquiring)
  }

  private var words: [UInt: [UInt64]] {
    pages.withLock { pages in
      var words: [UInt: [UInt64]] = [:]
      for (page, original) in pages {
        words[page] = Self.loadOrder.map { Self.word(original, $0) }
      }
      return words
    }
  }

  /// Shows all words as they are now, except that some of the words loaded first keep their old
  /// values.
  func refresh(keeping before: [UInt: [UInt64]] = [:]) {
    let keptCount = random.once(in: 2) ? random.below(Self.loadOrder.count + 1) : 0
    pages.withLock { pages in
      for (page, original) in pages {
        guard let copy = unsafe Page(bitPattern: page) else { continue }
        for index in 0..<(SharedPage.byteCount / 8) {
          unsafe copy[index].store(Self.word(original, index * 8), ordering: .releasing)
        }
        for (offset, word) in zip(Self.loadOrder, before[page] ?? []).prefix(keptCount) {
          unsafe copy[offset / 8].store(word, ordering: .releasing)
        }
      }
    }
  }

  // MARK: Calls

  func openDirectory(path: String) throws(SystemError) -> Int32 {
    try passing { () throws(SystemError) in try base.openDirectory(path: path) }
  }

  func open(
    _ name: String, in directory: Int32, mode: OpenMode
  ) throws(SystemError) -> Int32 {
    let descriptor = try passing { () throws(SystemError) in
      try base.open(name, in: directory, mode: mode)
    }
    if name == FileName.followPage { pageDescriptors.insert(descriptor) }
    return descriptor
  }

  func status(of descriptor: Int32) throws(SystemError) -> FileStatus {
    try passing { () throws(SystemError) in try base.status(of: descriptor) }
  }

  func lockBytes(_ descriptor: Int32, exclusively: Bool?) throws(SystemError) -> Bool {
    try passing { () throws(SystemError) in
      try base.lockBytes(descriptor, exclusively: exclusively)
    }
  }

  func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    try passing { () throws(SystemError) in
      try unsafe base.read(descriptor, into: buffer, at: offset)
    }
  }

  func map(
    _ descriptor: Int32, byteCount: Int, writable: Bool
  ) throws(SystemError) -> UnsafeMutableRawPointer {
    let address = try passing { () throws(SystemError) in
      try unsafe UInt(
        bitPattern: base.map(descriptor, byteCount: byteCount, writable: writable))
    }
    if pageDescriptors.contains(descriptor), let copy = unsafe calloc(1, byteCount) {
      pages.withLock { $0[UInt(bitPattern: copy)] = address }
      refresh()
      return unsafe copy
    }
    guard let result = unsafe UnsafeMutableRawPointer(bitPattern: address) else {
      throw SystemError(call: "map", errorNumber: SystemError.noMemory)
    }
    return unsafe result
  }

  func unmap(_ address: UnsafeMutableRawPointer, byteCount: Int) {
    let original = pages.withLock { $0.removeValue(forKey: UInt(bitPattern: address)) }
    guard let original, let mapped = unsafe UnsafeMutableRawPointer(bitPattern: original)
    else {
      return unsafe base.unmap(address, byteCount: byteCount)
    }
    unsafe base.unmap(mapped, byteCount: byteCount)
    unsafe free(address)
  }
}
