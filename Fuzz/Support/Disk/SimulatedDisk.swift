import Foundation

/// A machine's disk with its page cache. Several simulated processes may use it, one after another
/// or at once, each through its own `SimulatedFileSystem`.
///
/// It is as hostile as hardware, the kernel and a journalling filesystem may be:
/// - a sector on the device has any of the states that it went through since the last sync of its
///   file, independently of other sectors, perhaps torn between two of them;
/// - a file's length likewise has any of the values that it had since then. Names appear and
///   disappear independently of both and of each other until their directory is synced. A rename is
///   atomic;
/// - space that was allocated and not written may contain anything, most likely old segments of the
///   same store;
/// - a failed sync reports its error once, and marks pages clean that are not on the device.
///
/// Used by one thread at a time.
package final class SimulatedDisk: @unchecked Sendable {
  // SAFETY: Sendable because a simulation runs on one thread. Others wait in `calls`.

  /// A change of names that may not be on disk.
  struct NameChange {
    var places: [(directory: SimulatedFile, name: String, target: SimulatedFile?)]
  }

  /// Held during each call of a process, except while `intervene` runs.
  let calls = NSRecursiveLock()
  package let sectorByteCount: Int
  /// Whether writes into allocated space never run out of space.
  package let reservesBlocks: Bool
  /// Whether two names can be exchanged.
  package var exchanges = true
  /// The maximum bytes that files may take, or `nil`.
  package var capacity: Int?
  /// The maximum number of files, or `nil`.
  package var fileLimit: Int?
  /// The minimum size of a file's mapping. Another process may later map more of the file at the
  /// same address.
  package var leastMappedByteCount = 0
  let root: SimulatedFile
  var changes: [NameChange] = []
  /// The contents of removed files, which unwritten space may show again.
  private var gone: [[UInt8]] = []
  /// Unlinked files that may still be open or mapped.
  private var unnamed: [SimulatedFile] = []
  private(set) var bootIdentifier: [UInt8]
  /// No two processes share a descriptor, so a lock identifies its holder by the descriptor.
  var nextDescriptor: Int32 = 3

  package init(sectorByteCount: Int = 512, reservesBlocks: Bool = true) {
    self.sectorByteCount = sectorByteCount
    self.reservesBlocks = reservesBlocks
    root = SimulatedFile(isDirectory: true, sectorByteCount: sectorByteCount)
    bootIdentifier = [UInt8](repeating: 1, count: 16)
  }

  private init(_ disk: SimulatedDisk, root: SimulatedFile, boot: UInt8) {
    sectorByteCount = disk.sectorByteCount
    reservesBlocks = disk.reservesBlocks
    capacity = disk.capacity
    fileLimit = disk.fileLimit
    exchanges = disk.exchanges
    leastMappedByteCount = disk.leastMappedByteCount
    gone = disk.gone
    self.root = root
    bootIdentifier = [UInt8](repeating: boot, count: 16)
  }

  // MARK: Names

  func change(_ places: [(directory: SimulatedFile, name: String, target: SimulatedFile?)]) {
    for place in places { place.directory.names[place.name] = place.target }
    changes.append(NameChange(places: places))
  }

  /// Called when a file has lost its last name.
  func bury(_ file: SimulatedFile) {
    guard !file.isDirectory, file.byteCount > 0 else { return }
    unnamed.removeAll { !$0.isHeld }
    unnamed.append(file)
    gone.append(file.contents)
    if gone.count > 3 { gone.removeFirst() }
  }

  /// Syncs a directory: all changes to it are then on disk.
  func synchronize(_ directory: SimulatedFile) {
    var rest: [NameChange] = []
    for change in changes {
      if change.places.contains(where: { $0.directory === directory }) {
        Self.apply(change) { $0 }
      } else {
        rest.append(change)
      }
    }
    changes = rest
  }

  private static func apply(
    _ change: NameChange, to directory: (SimulatedFile) -> SimulatedFile?
  ) {
    for place in change.places {
      directory(place.directory)?.diskNames[place.name] = place.target
    }
  }

  /// Bytes that all reachable files have allocated.
  package var allocatedByteCount: Int {
    func sum(_ directory: SimulatedFile) -> Int {
      directory.names.values.reduce(0) {
        $0 + ($1.isDirectory ? sum($1) : $1.allocatedByteCount)
      }
    }
    return sum(root)
  }

  /// The number of files and directories below the root.
  package var fileCount: Int {
    func count(_ directory: SimulatedFile) -> Int {
      directory.names.values.reduce(0) { $0 + 1 + ($1.isDirectory ? count($1) : 0) }
    }
    return count(root)
  }

  /// The free bytes that programs see, or `nil` without a capacity.
  ///
  /// Unlinked files take space while they are open or mapped. But no write is refused because of
  /// them: a read of another simulation in this process may delay their release.
  var freeByteCount: Int? {
    unnamed.removeAll { !$0.isHeld }
    let held = unnamed.reduce(0) { $0 + $1.allocatedByteCount }
    return capacity.map { max(0, $0 - allocatedByteCount - held) }
  }

  // MARK: Power cuts

  /// The disk as it is found if the power fails now. This disk does not change.
  package func afterPowerCut(_ chooser: inout some CutChooser) -> SimulatedDisk {
    // Names first: which files exist.
    var namesOnDisk: [ObjectIdentifier: [String: SimulatedFile]] = [:]
    for change in changes where chooser.persistsName() {
      for place in change.places {
        let identifier = ObjectIdentifier(place.directory)
        namesOnDisk[identifier, default: place.directory.diskNames][place.name] = place.target
      }
    }
    let junk = chooser.isHostile() ? junk() : []
    func copy(_ directory: SimulatedFile, _ chooser: inout some CutChooser) -> SimulatedFile {
      let result = SimulatedFile(isDirectory: true, sectorByteCount: sectorByteCount)
      let names = namesOnDisk[ObjectIdentifier(directory)] ?? directory.diskNames
      for (name, file) in names.sorted(by: { $0.key < $1.key }) {
        result.diskNames[name] =
          file.isDirectory ? copy(file, &chooser) : file.afterPowerCut(&chooser, junk: junk)
      }
      result.names = result.diskNames
      return result
    }
    return SimulatedDisk(self, root: copy(root, &chooser), boot: bootIdentifier[0] &+ 1)
  }

  private func junk() -> [[UInt8]] {
    func files(_ directory: SimulatedFile) -> [[UInt8]] {
      directory.names.sorted { $0.key < $1.key }.flatMap {
        $0.value.isDirectory ? files($0.value) : [$0.value.contents]
      }
    }
    return (gone + files(root).filter { !$0.isEmpty }).map { contents in
      let rest = contents.count % sectorByteCount
      return rest == 0
        ? contents : contents + [UInt8](repeating: 0, count: sectorByteCount - rest)
    }
  }

  /// How many sectors and names are undecided.
  package var unsettledCount: Int {
    func sectors(_ directory: SimulatedFile) -> Int {
      directory.names.values.reduce(0) {
        $0 + ($1.isDirectory ? sectors($1) : $1.dirtySectorCount)
      }
    }
    return sectors(root) + changes.count
  }

  // MARK: For external changes

  private func file(_ path: String) -> SimulatedFile? {
    var file: SimulatedFile = root
    for component in path.split(separator: "/") {
      guard let next = file.names[String(component)] else { return nil }
      file = next
    }
    return file
  }

  /// The names in a directory, sorted.
  package func names(at path: String) -> [String] {
    (file(path)?.names.keys).map { $0.sorted() } ?? []
  }

  /// The bytes of a file, or `nil` if it does not exist.
  package func contents(of path: String) -> [UInt8]? {
    guard let file = file(path), !file.isDirectory else { return nil }
    return file.contents
  }

  /// Durably makes a directory.
  package func makeDirectory(_ path: String) {
    var components = path.split(separator: "/").map(String.init)
    let name = components.removeLast()
    guard let parent = file(components.joined(separator: "/")) else {
      preconditionFailure("no such directory")
    }
    let new = SimulatedFile(isDirectory: true, sectorByteCount: sectorByteCount)
    parent.names[name] = new
    parent.diskNames[name] = new
  }

  /// Durably replaces the contents of a file, creating it if it is missing. `nil` removes it.
  package func setContents(_ bytes: [UInt8]?, of path: String) {
    var components = path.split(separator: "/").map(String.init)
    let name = components.removeLast()
    guard let directory = file(components.joined(separator: "/")) else {
      preconditionFailure("no such directory")
    }
    guard let bytes else {
      directory.names[name] = nil
      directory.diskNames[name] = nil
      return
    }
    // A new file each time, because earlier images share the old one.
    let new = SimulatedFile(isDirectory: false, sectorByteCount: sectorByteCount)
    new.replaceContents(bytes)
    directory.names[name] = new
    directory.diskNames[name] = new
  }

  /// Makes reads of these bytes of a file fail. Mappings are unaffected. The failures end with a
  /// power cut.
  package func setUnreadable(_ range: Range<Int>, of path: String) {
    file(path)?.unreadable = range
  }

  /// Makes a file share its blocks with a copy, as `cp` does on some filesystems. Writing to a page
  /// then takes a block.
  package func shareBlocks(of path: String) { file(path)?.shareAllPages() }

  /// Drops all clean pages that no mapping holds, as the kernel does when it needs memory.
  package func dropCaches() {
    func drop(_ directory: SimulatedFile) {
      for file in directory.names.values { file.isDirectory ? drop(file) : file.dropCache() }
    }
    drop(root)
  }

  /// A disk of the same kind, in the same boot, with nothing on it.
  func emptyCopy() -> SimulatedDisk {
    let root = SimulatedFile(isDirectory: true, sectorByteCount: sectorByteCount)
    return SimulatedDisk(self, root: root, boot: bootIdentifier[0])
  }

  /// A copy in which everything is on disk as the running system sees it, and no process is
  /// running.
  package func settled() -> SimulatedDisk {
    var newest = Newest()
    return afterPowerCut(&newest)
  }

  /// Everything reached the disk.
  private struct Newest: CutChooser {
    mutating func version(of count: Int) -> Int { count - 1 }
    mutating func tearsSector() -> Bool { false }
    mutating func keepsOldWord() -> Bool { false }
    mutating func length(of count: Int) -> Int { count - 1 }
    mutating func persistsName() -> Bool { true }
    mutating func fillsUnwritten() -> Bool { false }
    mutating func junk(of count: Int) -> Int { 0 }
    mutating func isHostile() -> Bool { false }
  }
}
