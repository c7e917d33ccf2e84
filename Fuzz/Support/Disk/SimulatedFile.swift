import CairnLibC

/// One file or directory of a simulated disk: what the disk has of it, what the page cache shows,
/// and every state that each sector went through since the last sync.
///
/// Used by one thread at a time.
@safe
final class SimulatedFile {
  let sectorByteCount: Int
  let isDirectory: Bool

  // MARK: What the disk holds

  /// The bytes from the start; zeros beyond.
  private(set) var disk: [UInt8] = []
  /// The sectors that were ever written. Others have the device's old content.
  private(set) var isWritten: [Bool] = []
  /// Sectors before this one are left from an earlier power cut, and no longer change.
  private var fixedSectorCount = 0
  private(set) var diskByteCount = 0
  /// The states of sectors since the last sync, oldest first. The device may have any of them.
  private(set) var versions: [Int: [[UInt8]]] = [:]
  /// The lengths since the last sync.
  private(set) var lengths: [Int] = []
  /// Sectors that a failed sync left clean in the cache but not on disk, as the cache has them.
  private var stale: [Int: [UInt8]] = [:]

  /// The names in a directory: on disk, and as the running system sees them.
  var diskNames: [String: SimulatedFile] = [:]
  var names: [String: SimulatedFile] = [:]

  // MARK: What the running system sees

  /// Bytes that the device cannot read.
  var unreadable: Range<Int>?
  private(set) var byteCount = 0
  private(set) var allocatedByteCount = 0
  /// The pages that share a block with another file. A page of several blocks may share only some.
  private(set) var sharedPages: Set<Int> = []
  var mappingCount = 0
  var descriptorCount = 0
  /// Whether the file keeps its space after it is unlinked.
  var isHeld: Bool { mappingCount + descriptorCount > 0 }
  /// The holders of its flock(2) locks, and those of its fcntl(2) locks.
  var holders = LockHolders()
  var byteHolders = LockHolders()
  /// The page cache, or `nil` while it equals the disk.
  private var cache: UnsafeMutableRawPointer?
  private var cacheCapacity = 0

  init(isDirectory: Bool, sectorByteCount: Int) {
    self.isDirectory = isDirectory
    self.sectorByteCount = sectorByteCount
  }

  /// A file as it is found after a power cut.
  init(disk: [UInt8], isWritten: [Bool], byteCount: Int, sectorByteCount: Int) {
    isDirectory = false
    self.sectorByteCount = sectorByteCount
    self.disk = disk
    self.isWritten = isWritten
    diskByteCount = byteCount
    self.byteCount = byteCount
    allocatedByteCount = (byteCount + 4095) & ~4095
    fixedSectorCount = (byteCount + sectorByteCount - 1) / sectorByteCount
  }

  deinit { unsafe free(cache) }

  // MARK: The page cache

  /// The memory that shows the file, at least `capacity` bytes of it.
  func memory(capacity: Int) -> UnsafeMutableRawPointer {
    if let cache = unsafe cache, capacity <= cacheCapacity { return unsafe cache }
    precondition(mappingCount == 0, "the simulated mapping is too small")
    let newCapacity = max((max(capacity, byteCount) + 4095) & ~4095, disk.count, 2 * cacheCapacity)
    guard let memory = unsafe calloc(1, newCapacity) else { fatalError("out of memory") }
    if let cache = unsafe cache {
      unsafe memory.copyMemory(from: cache, byteCount: cacheCapacity)
      unsafe free(cache)
    } else {
      let count = min(disk.count, newCapacity)
      unsafe disk.withUnsafeBytes { bytes in
        if let base = bytes.baseAddress {
          unsafe memory.copyMemory(from: base, byteCount: count)
        }
      }
    }
    unsafe cache = memory
    cacheCapacity = newCapacity
    return unsafe memory
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
    let count = max(0, min(buffer.count, byteCount - offset))
    guard count > 0, let target = buffer.baseAddress else { return 0 }
    if let cache = unsafe cache {
      let known = max(0, min(count, cacheCapacity - offset))
      unsafe memcpy(target, cache + min(offset, cacheCapacity), known)
      unsafe memset(target + known, 0, count - known)
    } else {
      let known = max(0, min(count, disk.count - offset))
      unsafe disk.withUnsafeBytes { bytes in
        if known > 0, let base = bytes.baseAddress {
          unsafe memcpy(target, base + offset, known)
        }
      }
      unsafe memset(target + known, 0, count - known)
    }
    return count
  }

  func shareAllPages() { sharePages(of: 0..<allocatedByteCount) }

  /// Records that the blocks within a range of bytes are shared. The simulated block is a sector.
  func sharePages(of range: Range<Int>) {
    let blocks = range.lowerBound / sectorByteCount..<range.upperBound / sectorByteCount
    sharedPages.formUnion(blocks.map { $0 * sectorByteCount / 4096 })
  }

  /// The pages of a range that share a block.
  func sharedPages(at offset: Int, count: Int) -> Set<Int> {
    if sharedPages.isEmpty || count == 0 { return [] }
    return sharedPages.intersection(offset / 4096...(offset + count - 1) / 4096)
  }

  func write(_ buffer: UnsafeRawBufferPointer, at offset: Int) {
    guard let source = buffer.baseAddress, buffer.count > 0 else { return }
    sharedPages.subtract(sharedPages(at: offset, count: buffer.count))
    let end = offset + buffer.count
    let memory = unsafe memory(capacity: end)
    unsafe (memory + offset).copyMemory(from: source, byteCount: buffer.count)
    if end > byteCount { setLength(end) }
    allocatedByteCount = max(allocatedByteCount, (end + 4095) & ~4095)
    noteWrite(at: offset, count: buffer.count)
  }

  private func setLength(_ newByteCount: Int) {
    byteCount = newByteCount
    lengths.append(newByteCount)
  }

  func allocate(to end: Int) {
    allocatedByteCount = max(allocatedByteCount, (end + 4095) & ~4095)
    if end > byteCount { setLength(end) }
  }

  func truncate(to newByteCount: Int) {
    let old = byteCount
    if newByteCount == old { return }
    setLength(newByteCount)
    guard newByteCount < old else { return }
    allocatedByteCount = min(allocatedByteCount, (newByteCount + 4095) & ~4095)
    fixedSectorCount = min(
      fixedSectorCount, (newByteCount + sectorByteCount - 1) / sectorByteCount)
    // What was cut off reads as zeros if the file grows again.
    let end = min(old, max(disk.count, unsafe cache == nil ? 0 : cacheCapacity))
    guard end > newByteCount else { return }
    let memory = unsafe memory(capacity: end)
    unsafe memset(memory + newByteCount, 0, end - newByteCount)
    let first = newByteCount / sectorByteCount
    for sector in first...(max(first, (end - 1) / sectorByteCount)) where isKnown(sector) {
      noteVersion(sector)
    }
  }

  /// Whether any part of a sector may have been written.
  private func isKnown(_ sector: Int) -> Bool {
    versions[sector] != nil || stale[sector] != nil
      || (sector < isWritten.count && isWritten[sector])
  }

  // MARK: Versions

  /// Records that bytes in the cache have changed.
  func noteWrite(at offset: Int, count: Int) {
    guard count > 0 else { return }
    for sector in offset / sectorByteCount...(offset + count - 1) / sectorByteCount {
      noteVersion(sector)
    }
    if !stale.isEmpty { redirty(offset / 4096...(offset + count - 1) / 4096) }
  }

  private func noteVersion(_ sector: Int) {
    let start = sector * sectorByteCount
    let memory = unsafe memory(capacity: start + sectorByteCount)
    let bytes = unsafe [UInt8](
      UnsafeRawBufferPointer(start: memory + start, count: sectorByteCount))
    versions[sector, default: []].append(bytes)
    stale[sector] = nil
  }

  /// A new write to a page makes its stale sectors dirty again.
  private func redirty(_ pages: ClosedRange<Int>) {
    let perPage = max(1, 4096 / sectorByteCount)
    for sector in stale.keys where pages.contains(sector / perPage) { noteVersion(sector) }
  }

  /// What the cache showed of a sector when its last write was recorded.
  func lastNoted(_ sector: Int) -> [UInt8] {
    versions[sector]?.last ?? stale[sector] ?? diskSector(sector)
  }

  func diskSector(_ sector: Int) -> [UInt8] {
    let start = sector * sectorByteCount
    var bytes = [UInt8](repeating: 0, count: sectorByteCount)
    let count = max(0, min(sectorByteCount, disk.count - start))
    if count > 0 { bytes.replaceSubrange(0..<count, with: disk[start..<(start + count)]) }
    return bytes
  }

  /// Changes bytes that a mapped write has just put into the cache, before the write is recorded.
  func amend(at offset: Int, count: Int, _ change: (_ old: UInt64, _ new: UInt64) -> UInt64) {
    guard count > 0 else { return }
    let memory = unsafe memory(capacity: offset + count)
    for sector in offset / sectorByteCount...(offset + count - 1) / sectorByteCount {
      let old = lastNoted(sector)
      let start = sector * sectorByteCount
      for place in stride(from: 0, to: sectorByteCount, by: 8) {
        let word = unsafe old.withUnsafeBytes {
          unsafe $0.load(fromByteOffset: place, as: UInt64.self)
        }
        let address = unsafe memory + start + place
        let new = unsafe address.load(as: UInt64.self)
        if word != new { unsafe address.storeBytes(of: change(word, new), as: UInt64.self) }
      }
    }
  }

  /// Reverts some words that a mapped write has just put into the cache, while `body` runs.
  func showSomeWords(
    at offset: Int, count: Int, isOld: () -> Bool, while body: () -> Void
  ) {
    let memory = unsafe memory(capacity: offset + count) + offset
    let bytes = unsafe [UInt8](UnsafeRawBufferPointer(start: memory, count: count))
    amend(at: offset, count: count) { old, new in isOld() ? old : new }
    body()
    unsafe bytes.withUnsafeBytes { source in
      guard let base = source.baseAddress else { return }
      unsafe memory.copyMemory(from: base, byteCount: count)
    }
  }

  // MARK: Syncs

  /// What a sync has to write out when it begins.
  struct SyncMark {
    fileprivate var stateCounts: [Int: Int]
    fileprivate var lengthCount: Int
  }

  var syncMark: SyncMark {
    SyncMark(stateCounts: versions.mapValues(\.count), lengthCount: lengths.count)
  }

  /// Performs a sync that succeeds. It covers what existed when it began, and may miss later
  /// changes.
  func synchronize(_ mark: SyncMark) {
    for (sector, count) in mark.stateCounts {
      // Another sync may have removed them all meanwhile.
      guard let states = versions[sector], count <= states.count else { continue }
      store(states[count - 1], at: sector)
      versions[sector] = count < states.count ? Array(states.dropFirst(count)) : nil
    }
    guard mark.lengthCount > 0, mark.lengthCount <= lengths.count else { return }
    diskByteCount = lengths[mark.lengthCount - 1]
    lengths.removeFirst(mark.lengthCount)
  }

  /// Performs a sync that fails: the device may have received any state of each sector, and the
  /// kernel now treats all pages as clean.
  func failSync(_ choice: (Int) -> Int) {
    for (sector, states) in versions.sorted(by: { $0.key < $1.key }) {
      let chosen = choice(states.count + 1)
      if chosen > 0 { store(states[chosen - 1], at: sector) }
      if let last = states.last, chosen < states.count { stale[sector] = last }
    }
    versions = [:]
    let all = [diskByteCount] + lengths
    diskByteCount = all[choice(all.count)]
    lengths = diskByteCount == byteCount ? [] : [byteCount]
  }

  /// Drops clean pages. The next reads return the bytes on disk.
  func dropCache() {
    // The kernel keeps the pages of a mapping.
    guard mappingCount == 0, let cache = unsafe cache else { return }
    for sector in stale.keys {
      let bytes = diskSector(sector)
      unsafe bytes.withUnsafeBytes { source in
        guard let base = source.baseAddress else { return }
        unsafe (cache + sector * sectorByteCount).copyMemory(from: base, byteCount: source.count)
      }
    }
    stale = [:]
  }

  private func store(_ bytes: [UInt8], at sector: Int) {
    Self.store(bytes, at: sector, in: &disk, &isWritten, sectorByteCount)
  }

  private static func store(
    _ bytes: [UInt8], at sector: Int, in disk: inout [UInt8], _ isWritten: inout [Bool],
    _ sectorByteCount: Int
  ) {
    let start = sector * sectorByteCount
    if disk.count < start + sectorByteCount {
      disk += [UInt8](repeating: 0, count: start + sectorByteCount - disk.count)
      isWritten += [Bool](repeating: false, count: sector + 1 - isWritten.count)
    }
    unsafe disk.withUnsafeMutableBytes { target in
      unsafe bytes.withUnsafeBytes { source in
        guard let to = target.baseAddress, let from = source.baseAddress else { return }
        unsafe (to + start).copyMemory(from: from, byteCount: sectorByteCount)
      }
    }
    isWritten[sector] = true
  }

  // MARK: After a power cut

  /// The file as the device has it when the power fails. Its sectors and its length are chosen
  /// independently.
  func afterPowerCut(_ chooser: inout some CutChooser, junk: [[UInt8]]) -> SimulatedFile {
    var (disk, isWritten) = (disk, isWritten)
    for sector in versions.keys.sorted() {
      guard let states = versions[sector] else { continue }
      let chosen = chooser.version(of: states.count + 1)
      if chosen == 0 { continue }
      var bytes = states[chosen - 1]
      if chooser.tearsSector() {
        let before = chosen == 1 ? diskSector(sector) : states[chosen - 2]
        for start in stride(from: 0, to: sectorByteCount, by: 8) where chooser.keepsOldWord() {
          bytes.replaceSubrange(start..<(start + 8), with: before[start..<(start + 8)])
        }
      }
      Self.store(bytes, at: sector, in: &disk, &isWritten, sectorByteCount)
    }
    let allLengths = [diskByteCount] + lengths
    let length =
      allLengths.count == 1 ? diskByteCount : allLengths[chooser.length(of: allLengths.count)]
    if !junk.isEmpty, length > 0 {
      let sectorCount = (length + sectorByteCount - 1) / sectorByteCount
      for sector in min(fixedSectorCount, sectorCount)..<sectorCount
      where !(sector < isWritten.count && isWritten[sector]) && chooser.fillsUnwritten() {
        let source = junk[chooser.junk(of: junk.count)]
        let start = sector * sectorByteCount
        guard source.count >= start + sectorByteCount else { continue }
        Self.store(
          Array(source[start..<(start + sectorByteCount)]), at: sector, in: &disk, &isWritten,
          sectorByteCount)
      }
    }
    // Nothing exists beyond the end.
    let sectors = (length + sectorByteCount - 1) / sectorByteCount
    if disk.count > sectors * sectorByteCount {
      disk.removeLast(disk.count - sectors * sectorByteCount)
      isWritten.removeLast(isWritten.count - sectors)
    }
    if disk.count > length {
      for place in length..<disk.count { disk[place] = 0 }
    }
    return SimulatedFile(
      disk: disk, isWritten: isWritten, byteCount: length, sectorByteCount: sectorByteCount)
  }

  /// How many sectors have more than one possible state.
  var dirtySectorCount: Int { versions.count }

  /// How many states of sectors, and lengths, are possible besides the permanent ones.
  var stateCount: Int { versions.values.reduce(lengths.count) { $0 + $1.count } }

  /// What the running system reads.
  var contents: [UInt8] {
    var bytes = [UInt8](repeating: 0, count: byteCount)
    _ = unsafe bytes.withUnsafeMutableBytes { unsafe read(into: $0, at: 0) }
    return bytes
  }

  /// Puts bytes on the disk directly, as a test or an attacker would.
  func replaceContents(_ bytes: [UInt8]) {
    precondition(mappingCount == 0)
    unsafe free(cache)
    unsafe cache = nil
    cacheCapacity = 0
    let sectors = (bytes.count + sectorByteCount - 1) / sectorByteCount
    disk = bytes
    let rest = sectors * sectorByteCount - bytes.count
    if rest > 0 { disk += [UInt8](repeating: 0, count: rest) }
    isWritten = [Bool](repeating: true, count: sectors)
    (versions, stale, lengths) = ([:], [:], [])
    byteCount = bytes.count
    diskByteCount = bytes.count
    allocatedByteCount = (bytes.count + 4095) & ~4095
  }
}

/// The holders of one kind of lock on a file, by descriptor.
struct LockHolders {
  private var exclusive: Int32?
  private var shared: Set<Int32> = []

  /// Takes the lock, replacing the one that the descriptor already holds; `false` if another holder
  /// prevents this.
  mutating func take(_ descriptor: Int32, exclusively: Bool) -> Bool {
    let isOthers = exclusive.map { $0 != descriptor } ?? false
    if isOthers || exclusively && !shared.subtracting([descriptor]).isEmpty { return false }
    remove(descriptor)
    if exclusively { exclusive = descriptor } else { shared.insert(descriptor) }
    return true
  }

  mutating func remove(_ descriptor: Int32) {
    if exclusive == descriptor { exclusive = nil }
    shared.remove(descriptor)
  }
}
