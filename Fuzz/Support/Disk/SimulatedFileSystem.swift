import CairnStore
import Foundation
internal import Synchronization

/// What one simulated process sees of a simulated disk: the other side of the seam. Descriptors,
/// locks and mappings belong to the process and end with it.
///
/// Used by one thread at a time.
package final class SimulatedFileSystem: FileSystem, @unchecked Sendable {
  // SAFETY: Sendable because a simulation runs on one thread. A read of another simulation in this
  // process may free objects late. So `close` and `unmap` only record what ends, under a lock, and
  // calls take turns: the last reader of a cut segment shortens its file.

  package enum Call: String, CaseIterable, Sendable {
    case makeDirectory, openDirectory, names, rename, exchange, unlink, volume, open, status, lock,
      lockBytes, read
    case write, copy, allocate, truncate, synchronizeData, synchronize, dropCache, map, protect
    case bootIdentifier, randomBytes
    /// A write into a mapping: not a call, but a moment at which something can happen.
    case mappedWrite
  }

  /// What happens instead of a call.
  package enum Intervention {
    /// The call fails without an effect, except a sync: any part of its data reaches the disk.
    case fail(Int32)
    /// A read or write transfers at most this many bytes.
    case transferAtMost(Int)
    /// A read or write transfers half of the bytes, but at least one.
    case transferHalf
    /// The process dies before the call, or during a write. The first pages of the write may then
    /// have arrived, or any words of a write into a mapping.
    case die
  }

  package let disk: SimulatedDisk
  /// Called before each system call, and after each write into a mapping.
  package var intervene: ((Call) -> Intervention?)?
  /// Whether other processes see only some words of a write into a mapping. They read while
  /// `intervene` runs for that write.
  package var showsPartialWrites = false
  package internal(set) var callCount = 0
  package internal(set) var isDead = false
  var random: FuzzRandom
  var files: [Int32: SimulatedFile] = [:]
  /// The names by which files and directories were opened.
  private var paths: [Int32: String] = [:]
  /// The subject of the last call: an open file, and a name in it or a path.
  private var place: (descriptor: Int32?, name: String) = (nil, "")
  var mappings: [UInt: (file: SimulatedFile, count: Int)] = [:]
  /// The mappings that the process had when it died. Later writes into them are undone.
  var formerMappings: [UInt: SimulatedFile] = [:]

  /// Descriptors and mappings that ended since the last call.
  private let released = Mutex<[Released]>([])

  enum Released: Sendable {
    case descriptor(Int32)
    case mapping(UInt)
  }

  package init(disk: SimulatedDisk, seed: UInt64) {
    self.disk = disk
    random = FuzzRandom(seed: seed)
  }

  /// Ends the process: calls no longer have an effect, locks are released, and the page cache
  /// stays.
  package func kill() {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    takeReleased()
    if isDead { return }
    isDead = true
    for (descriptor, file) in files { release(file, descriptor) }
    for (file, count) in mappings.values { file.mappingCount -= count }
    formerMappings = mappings.mapValues(\.file)
    mappings = [:]
  }

  /// Descriptors and mappings that are open when none should be. A read elsewhere in the process
  /// may briefly delay a close.
  package var leftCount: Int {
    for _ in 0..<5000 {
      let count = disk.calls.withLock { () -> Int in
        takeReleased()
        return files.count + mappings.count
      }
      if count == 0 { return 0 }
      Reclamation.reclaim()
      pause(for: .milliseconds(1))
    }
    return files.count + mappings.count
  }

  func note(_ released: Released) { self.released.withLock { $0.append(released) } }

  private func takeReleased() {
    let all = released.withLock { released in
      defer { released.removeAll() }
      return released
    }
    for part in all {
      switch part {
      case .descriptor(let descriptor):
        guard let file = files.removeValue(forKey: descriptor) else { continue }
        paths[descriptor] = nil
        if !isDead { release(file, descriptor) }
      case .mapping(let address): removeMapping(address)
      }
    }
  }

  // MARK: The machinery

  /// What happens instead of a call that holds `SimulatedDisk.calls`. Meanwhile, other simulated
  /// processes may make calls, even on other threads.
  func interruption(of call: Call) -> Intervention? {
    disk.calls.unlock()
    defer { disk.calls.lock() }
    return intervene?(call)
  }

  /// Runs `body` as a call, unless something happens instead. `body` receives the maximum number of
  /// bytes to transfer.
  func calling<Result>(
    _ call: Call, _ descriptor: Int32? = nil, _ name: String = "",
    _ body: (Int) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    return try body(try announce(call, descriptor, name))
  }

  func announce(
    _ call: Call, _ descriptor: Int32? = nil, _ name: String = ""
  ) throws(SystemError) -> Int {
    takeReleased()
    place = (descriptor, name)
    if isDead { throw SystemError(call: call.rawValue, errorNumber: SystemError.inputOutput) }
    callCount += 1
    switch interruption(of: call) {
    case nil: return .max
    case .transferAtMost(let count): return count
    case .transferHalf: return Self.half
    case .fail(let number): throw SystemError(call: call.rawValue, errorNumber: number)
    case .die:
      kill()
      throw SystemError(call: call.rawValue, errorNumber: SystemError.inputOutput)
    }
  }

  /// The path of the last call's file, or `nil` if it was for none.
  package var currentPath: String? {
    guard let descriptor = place.descriptor else { return place.name.isEmpty ? nil : place.name }
    return paths[descriptor].map { Self.join($0, place.name) }
  }

  private static func join(_ path: String, _ name: String) -> String {
    name.isEmpty ? path : path == "/" ? path + name : path + "/" + name
  }

  /// A special limit: half of what is requested.
  static let half = -1

  static func transferCount(_ count: Int, limit: Int) -> Int {
    limit == half ? min(count, max(1, count / 2)) : min(count, limit)
  }

  func file(_ descriptor: Int32, _ call: Call) throws(SystemError) -> SimulatedFile {
    guard let file = files[descriptor] else {
      throw SystemError(call: call.rawValue, errorNumber: 9)  // EBADF
    }
    return file
  }

  func fail(_ call: Call, _ number: Int32) -> SystemError {
    SystemError(call: call.rawValue, errorNumber: number)
  }

  /// A descriptor for the file of the call in progress.
  func descriptor(for file: SimulatedFile) -> Int32 {
    defer { disk.nextDescriptor += 1 }
    paths[disk.nextDescriptor] = currentPath
    files[disk.nextDescriptor] = file
    file.descriptorCount += 1
    return disk.nextDescriptor
  }

  func release(_ file: SimulatedFile, _ descriptor: Int32) {
    file.descriptorCount -= 1
    file.holders.remove(descriptor)
    file.byteHolders.remove(descriptor)
  }

  func checkSpace(_ additional: Int, _ call: Call) throws(SystemError) {
    guard let capacity = disk.capacity, additional > 0 else { return }
    if disk.allocatedByteCount + additional > capacity { throw fail(call, SystemError.noSpace) }
  }
}
