import CairnLibC
import CairnStore
import Synchronization

/// The real file system behind a counter of calls. It can fail a chosen call, run a hook before
/// calls that change or read something, simulate a full disk, keep transfers short, and report
/// another boot. It also keeps track of descriptors.
final class FaultyFileSystem: FileSystem {
  /// The kinds of calls.
  enum Call: String, CaseIterable, Sendable {
    case makeDirectoryAtPath, makeDirectory, openDirectoryAtPath, openDirectory, names, rename
    case exchange, unlink, volume, open, status, lock, read, write, copy, allocate, truncate
    case synchronizeData, synchronize, dropCache, map, protect, prefault, unmapPages
    case reservesBlocks, bootIdentifier, randomBytes

    /// The kinds that can fail.
    static let failing = allCases.filter {
      ![.prefault, .unmapPages, .reservesBlocks].contains($0)
    }
  }

  /// What to fail.
  struct Fault: Sendable, CustomStringConvertible {
    var call: Call
    /// How many calls of the kind succeed first.
    var index: Int
    var errorNumber: Int32
    /// Whether all later calls of the kind fail too.
    var isLasting = false
    /// Whether the call takes effect before it reports the failure.
    var takesEffect = false

    var description: String { "\(call.rawValue)#\(index) errno \(errorNumber)" }
  }

  /// A call, before it is made.
  struct Event: Sendable {
    var call: Call
    /// The name of the file, or the path of the directory.
    var file: String
    /// How much is to be allocated.
    var byteCount = 0
  }

  /// Returns the number of the error to fail the call with.
  typealias Hook = @Sendable (Event) -> Int32?

  private struct State {
    var counts: [Call: Int] = [:]
    var fault: Fault?
    var hasFired = false
    /// The names of open files and directories.
    var names: [Int32: String] = [:]
    var mostOpen = 0
    var mappings = 0
    var writableMappings = 0
    var mistakes: [String] = []
    var lowest = Int32.max
    var hook: Hook?
    var watch: (@Sendable (Call) -> Void)?
    /// What the full disk has left, or `nil` if it is not full.
    var freeByteCount: Int?
    var readByteCount = 0
  }

  private let system = SystemFileSystem()
  private let state: Mutex<State>
  /// The maximum bytes that one read or write transfers.
  private let transferLimit: Int
  private let boot: [UInt8]?
  /// Whether to report blocks as reserved, or `nil` for the real answer.
  private let reservesBlocks: Bool?

  init(
    fault: Fault? = nil, transferLimit: Int = .max, bootIdentifier: [UInt8]? = nil,
    reservesBlocks: Bool? = nil
  ) {
    self.transferLimit = transferLimit
    self.reservesBlocks = reservesBlocks
    boot = bootIdentifier
    var state = State()
    state.fault = fault
    self.state = Mutex(state)
  }

  // MARK: Queries and settings of tests

  /// How many calls of each kind were made.
  var counts: [Call: Int] { state.withLock { $0.counts } }
  func count(of call: Call) -> Int { counts[call] ?? 0 }
  /// Whether the fault has happened.
  var hasFired: Bool { state.withLock { $0.hasFired } }
  /// Descriptors that were opened and not closed.
  var openDescriptorCount: Int { state.withLock { $0.names.count } }
  /// Waits, at most ten seconds, until nothing more is open and then nothing is mapped. A read of
  /// another test may delay the freeing of what a store released.
  func awaitClosing(downTo count: Int = 0) {
    for _ in 0..<10_000 {
      if openDescriptorCount <= count && (count > 0 || mappingCount == 0) { return }
      usleep(1_000)
    }
  }
  /// The maximum number of descriptors open at once.
  var mostOpenDescriptorCount: Int { state.withLock { $0.mostOpen } }
  /// Mappings that were made and not removed.
  var mappingCount: Int { state.withLock { $0.mappings } }
  /// Mappings that were made for writing.
  var writableMappingCount: Int { state.withLock { $0.writableMappings } }
  /// Descriptors closed twice, or used after they were closed.
  var mistakes: [String] { state.withLock { $0.mistakes } }
  /// The lowest descriptor that was returned.
  var lowestDescriptor: Int32 { state.withLock { $0.lowest } }

  /// Fails calls from now on. The count of calls starts again.
  func arm(_ fault: Fault?) {
    state.withLock {
      $0.fault = fault
      $0.hasFired = false
      $0.counts = [:]
    }
  }

  /// Runs code before each call of any kind, on the thread that makes it.
  func setWatch(_ watch: (@Sendable (Call) -> Void)?) { state.withLock { $0.watch = watch } }

  /// Runs code before calls that change or read something. The hook can fail the call, examine the
  /// disk at that moment, or block the calling thread.
  func setHook(_ hook: Hook?) { state.withLock { $0.hook = hook } }

  /// From now on, a file can allocate only blocks that it already has, blocks freed since, and this
  /// many more bytes.
  func fillDisk(leaving byteCount: Int = 0) { state.withLock { $0.freeByteCount = byteCount } }

  /// How many bytes were read by calls.
  var readByteCount: Int { state.withLock { $0.readByteCount } }

  // MARK: The machinery

  /// Makes a call.
  ///
  /// - Parameters:
  ///   - descriptor: the descriptor of the call, or `nil` if none is open.
  ///   - file: the name for a hook, or `nil` for the name of the descriptor. If there is neither,
  ///     no hook runs.
  private func perform<Value>(
    _ call: Call, on descriptor: Int32? = nil, _ file: String? = nil, byteCount: Int = 0,
    isHooked: Bool = false, _ body: () throws(SystemError) -> Value
  ) throws(SystemError) -> Value {
    let (fault, hook, watch, name) = state.withLock { state in
      let index = state.counts[call] ?? 0
      state.counts[call] = index + 1
      if let descriptor, state.names[descriptor] == nil {
        state.mistakes.append("\(call.rawValue) on closed descriptor \(descriptor)")
      }
      var fault = state.fault
      if let armed = fault, armed.call == call,
        index == armed.index || armed.isLasting && index > armed.index
      {
        state.hasFired = true
      } else {
        fault = nil
      }
      return (
        fault, isHooked ? state.hook : nil, state.watch,
        file ?? descriptor.flatMap { state.names[$0] } ?? ""
      )
    }
    watch?(call)
    if let number = hook?(Event(call: call, file: name, byteCount: byteCount)) {
      let isAllocation = call == .allocate || call == .reservesBlocks
      throw SystemError(call: isAllocation ? "fallocate" : "\(call)", errorNumber: number)
    }
    if let fault {
      if fault.takesEffect { _ = try body() }
      throw SystemError(call: call.rawValue, errorNumber: fault.errorNumber)
    }
    return try body()
  }

  private func opened(_ descriptor: Int32, _ name: String) -> Int32 {
    state.withLock {
      $0.names[descriptor] = name
      $0.mostOpen = max($0.mostOpen, $0.names.count)
      $0.lowest = min($0.lowest, descriptor)
    }
    return descriptor
  }

  private func giveBack(_ byteCount: Int) {
    state.withLock { $0.freeByteCount? += max(0, byteCount) }
  }

  /// How much of a full disk a file takes. 0 if the disk is not full.
  private func allocatedByteCount(of name: String, in directory: Int32) -> Int {
    guard state.withLock({ $0.freeByteCount != nil }),
      let file = try? system.open(name, in: directory, mode: .readOnly)
    else { return 0 }
    defer { system.close(file) }
    return (try? system.status(of: file))?.allocatedByteCount ?? 0
  }

  // MARK: FileSystem

  var mappedWriteObserver: (any MappedWriteObserver)? { nil }

  func makeDirectory(path: String) throws(SystemError) {
    try perform(.makeDirectoryAtPath) { () throws(SystemError) in
      try system.makeDirectory(path: path)
    }
  }

  func makeDirectory(_ name: String, in directory: Int32) throws(SystemError) {
    try perform(.makeDirectory, on: directory) { () throws(SystemError) in
      try system.makeDirectory(name, in: directory)
    }
  }

  func openDirectory(path: String) throws(SystemError) -> Int32 {
    try perform(.openDirectoryAtPath, path, isHooked: true) { () throws(SystemError) in
      opened(try system.openDirectory(path: path), path)
    }
  }

  func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32 {
    try perform(.openDirectory, on: directory) { () throws(SystemError) in
      opened(try system.openDirectory(name, in: directory), name)
    }
  }

  func names(in directory: Int32) throws(SystemError) -> [String] {
    try perform(.names, on: directory) { () throws(SystemError) in
      try system.names(in: directory)
    }
  }

  func rename(
    _ name: String, in source: Int32, to newName: String, in target: Int32
  ) throws(SystemError) {
    try perform(.rename, on: source, name, isHooked: true) { () throws(SystemError) in
      let freed = allocatedByteCount(of: newName, in: target)
      try system.rename(name, in: source, to: newName, in: target)
      giveBack(freed)
    }
  }

  func exchange(_ name: String, with other: String, in directory: Int32) throws(SystemError) {
    try perform(.exchange, on: directory, name, isHooked: true) { () throws(SystemError) in
      try system.exchange(name, with: other, in: directory)
    }
  }

  func unlink(_ name: String, in directory: Int32) throws(SystemError) {
    try perform(.unlink, on: directory, name, isHooked: true) { () throws(SystemError) in
      let freed = allocatedByteCount(of: name, in: directory)
      try system.unlink(name, in: directory)
      giveBack(freed)
    }
  }

  func volume(of directory: Int32) throws(SystemError) -> VolumeStatus {
    try perform(.volume, on: directory) { () throws(SystemError) in
      try system.volume(of: directory)
    }
  }

  func freeByteCount(of directory: Int32) throws(SystemError) -> Int {
    try perform(.volume, on: directory) { () throws(SystemError) in
      try system.freeByteCount(of: directory)
    }
  }

  func open(_ name: String, in directory: Int32, mode: OpenMode) throws(SystemError) -> Int32 {
    try perform(.open, on: directory, name, isHooked: true) { () throws(SystemError) in
      opened(try system.open(name, in: directory, mode: mode), name)
    }
  }

  func close(_ descriptor: Int32) {
    let isOpen = state.withLock { state in
      if state.names.removeValue(forKey: descriptor) != nil { return true }
      state.mistakes.append("descriptor \(descriptor) closed twice")
      return false
    }
    if isOpen { system.close(descriptor) }
  }

  func status(of descriptor: Int32) throws(SystemError) -> FileStatus {
    try perform(.status, on: descriptor) { () throws(SystemError) in
      try system.status(of: descriptor)
    }
  }

  func status(of name: String, in directory: Int32) throws(SystemError) -> FileStatus {
    try perform(.status, on: directory, name) { () throws(SystemError) in
      try system.status(of: name, in: directory)
    }
  }

  func lock(_ descriptor: Int32, exclusively: Bool) throws(SystemError) -> Bool {
    try perform(.lock, on: descriptor) { () throws(SystemError) in
      try system.lock(descriptor, exclusively: exclusively)
    }
  }

  func unlock(_ descriptor: Int32) { system.unlock(descriptor) }

  func lockBytes(_ descriptor: Int32, exclusively: Bool?) throws(SystemError) -> Bool {
    try perform(.lock, on: descriptor) { () throws(SystemError) in
      try system.lockBytes(descriptor, exclusively: exclusively)
    }
  }

  func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    // SAFETY: a prefix of the buffer, which the caller guarantees to be valid.
    try perform(.read, on: descriptor, isHooked: true) { () throws(SystemError) in
      let short = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(transferLimit))
      let count = unsafe try system.read(descriptor, into: short, at: offset)
      state.withLock { $0.readByteCount += count }
      return count
    }
  }

  func write(
    _ descriptor: Int32, from buffer: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    // SAFETY: as for `read`.
    try perform(.write, on: descriptor, isHooked: true) { () throws(SystemError) in
      let short = unsafe UnsafeRawBufferPointer(rebasing: buffer.prefix(transferLimit))
      return unsafe try system.write(descriptor, from: short, at: offset)
    }
  }

  func allocate(_ descriptor: Int32, from offset: Int, byteCount: Int) throws(SystemError) {
    try perform(.allocate, on: descriptor, byteCount: byteCount, isHooked: true) {
      () throws(SystemError) in
      // Files of a store are allocated from their beginning, so their size in blocks shows what is
      // missing.
      let missing = try offset + byteCount - system.status(of: descriptor).allocatedByteCount
      let isPossible = state.withLock { state in
        guard let free = state.freeByteCount, missing > 0 else { return true }
        if free >= missing { state.freeByteCount = free - missing }
        return free >= missing
      }
      if !isPossible { throw SystemError(call: "fallocate", errorNumber: ENOSPC) }
      try system.allocate(descriptor, from: offset, byteCount: byteCount)
    }
  }

  func reservesBlocks(_ descriptor: Int32) throws(SystemError) -> Bool {
    try perform(.reservesBlocks, on: descriptor, isHooked: true) { () throws(SystemError) in
      if let reservesBlocks { return reservesBlocks }
      return try system.reservesBlocks(descriptor)
    }
  }

  func truncate(_ descriptor: Int32, to byteCount: Int) throws(SystemError) {
    try perform(.truncate, on: descriptor, isHooked: true) { () throws(SystemError) in
      let before = try system.status(of: descriptor).allocatedByteCount
      try system.truncate(descriptor, to: byteCount)
      giveBack(before - (try system.status(of: descriptor).allocatedByteCount))
    }
  }

  func synchronizeData(_ descriptor: Int32) throws(SystemError) {
    try perform(.synchronizeData, on: descriptor, isHooked: true) { () throws(SystemError) in
      try system.synchronizeData(descriptor)
    }
  }

  func synchronize(_ descriptor: Int32) throws(SystemError) {
    try perform(.synchronize, on: descriptor, isHooked: true) { () throws(SystemError) in
      try system.synchronize(descriptor)
    }
  }

  func copy(
    _ source: Int32, to target: Int32, at offset: Int, byteCount: Int
  ) throws(SystemError) -> Int {
    try perform(.copy, on: target) { () throws(SystemError) in
      try system.copy(source, to: target, at: offset, byteCount: byteCount)
    }
  }

  func nextData(_ descriptor: Int32, from offset: Int) -> Int {
    system.nextData(descriptor, from: offset)
  }

  func dropCache(_ descriptor: Int32) throws(SystemError) {
    try perform(.dropCache, on: descriptor) { () throws(SystemError) in
      try system.dropCache(descriptor)
    }
  }

  func map(
    _ descriptor: Int32, byteCount: Int, writable: Bool
  ) throws(SystemError) -> UnsafeMutableRawPointer {
    let address = try unsafe perform(.map, on: descriptor) { () throws(SystemError) in
      try unsafe system.map(descriptor, byteCount: byteCount, writable: writable)
    }
    state.withLock {
      $0.mappings += 1
      if writable { $0.writableMappings += 1 }
    }
    return unsafe address
  }

  func unmap(_ address: UnsafeMutableRawPointer, byteCount: Int) {
    state.withLock { $0.mappings -= 1 }
    unsafe system.unmap(address, byteCount: byteCount)
  }

  func protect(_ address: UnsafeMutableRawPointer, byteCount: Int) throws(SystemError) {
    try perform(.protect) { () throws(SystemError) in
      try unsafe system.protect(address, byteCount: byteCount)
    }
  }

  func prefault(_ address: UnsafeMutableRawPointer, byteCount: Int) {
    // A hint that cannot fail.
    state.withLock { $0.counts[.prefault, default: 0] += 1 }
    unsafe system.prefault(address, byteCount: byteCount)
  }

  func unmapPages(_ address: UnsafeMutableRawPointer, byteCount: Int) {
    try? perform(.unmapPages, isHooked: true) { () throws(SystemError) in
      unsafe system.unmapPages(address, byteCount: byteCount)
    }
  }

  func bootIdentifier() throws(SystemError) -> [UInt8] {
    try perform(.bootIdentifier) { () throws(SystemError) in
      if let boot { return boot }
      return try system.bootIdentifier()
    }
  }

  func randomBytes(count: Int) throws(SystemError) -> [UInt8] {
    try perform(.randomBytes) { () throws(SystemError) in try system.randomBytes(count: count) }
  }

  func fileSizeLimit() -> Int { system.fileSizeLimit() }
  func userIdentifier() -> UInt32 { system.userIdentifier() }
}
