/// Creates and opens a store's segments.
package struct SegmentFiles: Sendable {
  package let home: SegmentHome
  package let storeIdentifier: [UInt8]
  /// Whether segments are mapped at all.
  package let usesMappings: Bool
  /// Whether writes to allocated blocks never run out of space. Otherwise nothing is mapped for
  /// writing, because a write to a page could raise SIGBUS.
  package let reservesBlocks: Bool
  package let table: SegmentTable
  /// Whether the unmapped files of the first segments stay open, because another process may remove
  /// them.
  private let keepsFilesOpen: Bool
  private static let openFileLimit = 256

  /// - Parameters:
  ///   - lockFile: the store's file LOCK, or `nil` if no file is ever truncated.
  ///   - pageFile: the store's file FOLLOW, if it announces its writes.
  ///   - keepsFilesOpen: whether another process may remove files that are still being read.
  package init(
    directory: Directory, lockFile: File? = nil, pageFile: File? = nil, storeIdentifier: [UInt8],
    usesMappings: Bool, reservesBlocks: Bool, table: SegmentTable, keepsFilesOpen: Bool = false
  ) {
    self.keepsFilesOpen = keepsFilesOpen
    home = SegmentHome(directory: directory, lockFile: lockFile, pageFile: pageFile)
    self.storeIdentifier = storeIdentifier
    self.usesMappings = usesMappings
    self.reservesBlocks = reservesBlocks
    self.table = table
  }

  private var directory: Directory { home.directory }

  /// Closes files that were left open for the next read by a system call. Call after work that
  /// makes many such reads.
  package func closeReadFiles() { home.openFiles.closeAll() }

  /// Call before the store's lock is released, so that the next session sees remaining readers.
  package func endSession() {
    closeReadFiles()
    home.readers.endSession()
  }

  /// Creates a new segment. The caller makes the name durable. If this throws, no file remains.
  ///
  /// - Parameters:
  ///   - durably: whether to sync the header. If not, a sync of the log must reach the segment before
  ///     anything in it is durable.
  ///   - createFile: creates the file with a name, or `nil` to create it in the directory.
  package func create(
    id: SegmentID, salt: UInt64, baseSequence: SequenceNumber, baseTime: Int64, capacity: Int,
    allocating byteCount: Int, durably: Bool,
    by createFile: ((String) throws(StoreError) -> File)? = nil
  ) throws(StoreError) -> Segment {
    let header = SegmentHeader(
      storeIdentifier: storeIdentifier, id: id, salt: salt, baseSequence: baseSequence,
      baseTime: baseTime)
    let name = FileName.segment(id)
    let granule = try table.reserve(capacity: capacity)
    do throws(StoreError) {
      let file =
        if let createFile { try createFile(name) } else { try directory.createFile(name) }
      try file.allocate(from: 0, to: byteCount, orExtend: !usesMappings || !reservesBlocks)
      try file.write(header.encoded().rawSpan, at: 0)
      // DURABILITY: the header and the length are on disk before a manifest that relies on them.
      if durably { try file.synchronize() }
      let segment = Segment(
        header: header, file: SegmentFile(file, home: home, readOnly: false, isKept: true),
        mapping: try map(file, byteCount: capacity, writable: true), capacity: capacity,
        granule: granule, allocatedByteCount: byteCount,
        syncedByteCount: durably ? SegmentHeader.byteCount : 0,
        compactedAt: 0, usage: SegmentUsage(total: table.total))
      table.publish(segment)
      return segment
    } catch {
      table.release(granule: granule, capacity: capacity)
      // A failed allocation leaves part of a file.
      try? directory.unlink(name)
      throw error
    }
  }

  /// Opens a segment that the manifest lists.
  ///
  /// - Parameters:
  ///   - capacity: the segment's capacity if this process, or the process that it follows, appends
  ///     to it. Otherwise `nil`: the segment gets a read-only mapping of its length.
  ///   - byteCount: the end of its records, or `nil` if only the file's length is known.
  ///   - usage: the usage of its records, if known.
  ///   - place: its first granule, if it already has one.
  ///   - note: called with the length of the file.
  package func open(
    id: SegmentID, salt: UInt64, byteCount: Int?, capacity: Int?, readOnly: Bool,
    compactedAt: SequenceNumber = 0, usage: SegmentUsage? = nil, at place: Int? = nil,
    noting note: (Int) -> Void = { _ in }
  ) throws(StoreError) -> Segment {
    let (file, header, fileByteCount) = try check(id: id, salt: salt, readOnly: readOnly)
    note(fileByteCount)
    let end = byteCount ?? fileByteCount
    guard end <= fileByteCount else {
      throw .corrupt(Corruption(file: file.name, offset: fileByteCount, cause: .fileTooShort))
    }
    let capacity = max(capacity ?? 0, end)
    let granule = if let place { place } else { try table.reserve(capacity: capacity) }
    do {
      let mapping = try map(file, byteCount: capacity, writable: capacity > end && !readOnly)
      let isKept =
        keepsFilesOpen && mapping == nil && table.segmentCount < Self.openFileLimit
      let segment = Segment(
        header: header,
        file: SegmentFile(file, home: home, readOnly: readOnly, isKept: isKept),
        mapping: mapping, capacity: capacity,
        granule: granule, allocatedByteCount: end, syncedByteCount: end, compactedAt: compactedAt,
        usage: usage ?? SegmentUsage(total: table.total))
      table.publish(segment)
      return segment
    } catch {
      table.release(granule: granule, capacity: capacity)
      throw error
    }
  }

  /// Opens a listed segment's file and checks its header against the manifest.
  package func check(
    id: SegmentID, salt: UInt64, readOnly: Bool
  ) throws(StoreError) -> (File, SegmentHeader, byteCount: Int) {
    let name = FileName.segment(id)
    guard let file = try directory.openFile(name, mode: readOnly ? .readOnly : .readWrite) else {
      throw .corrupt(Corruption(file: name, offset: 0, cause: .missingFile))
    }
    let byteCount = try file.status().byteCount
    guard byteCount <= FormatVersion.highestOffset else {
      throw .corrupt(Corruption(file: name, offset: 0, cause: .badLength))
    }
    var bytes = [UInt8](repeating: 0, count: SegmentHeader.byteCount)
    guard try file.read(into: &bytes, at: 0) == bytes.count else {
      throw .corrupt(Corruption(file: name, offset: byteCount, cause: .fileTooShort))
    }
    let header = try SegmentHeader(decoding: bytes.rawSpan, file: name)
    guard header.id == id, header.salt == salt, header.storeIdentifier == storeIdentifier else {
      throw .corrupt(
        Corruption(file: name, offset: SegmentHeader.identifierOffset, cause: .badHeader))
    }
    return (file, header, byteCount)
  }

  /// A mapping, or `nil` if this segment or the whole store uses none, or if the process has no
  /// room for another mapping. Reads are then system calls.
  private func map(
    _ file: File, byteCount: Int, writable: Bool
  ) throws(StoreError) -> MappedMemory? {
    guard usesMappings, reservesBlocks || !writable,
      table.segmentCount < SegmentTable.mappedSegmentLimit
    else { return nil }
    do { return try MappedMemory(file: file, byteCount: byteCount, writable: writable) } catch {
      if case .system(let failure) = error, failure.errorNumber == SystemError.noMemory {
        return nil
      }
      throw error
    }
  }
}
