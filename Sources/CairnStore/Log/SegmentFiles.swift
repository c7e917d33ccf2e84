/// How a store's segments are made and opened.
package struct SegmentFiles: Sendable {
  package let home: SegmentHome
  package let storeIdentifier: [UInt8]
  /// Whether segments are mapped at all.
  package let usesMappings: Bool
  /// Whether blocks that are allocated can be written to without running out of space. Else nothing is mapped to be
  /// written to: the store into a page would raise SIGBUS.
  package let reservesBlocks: Bool
  package let table: SegmentTable
  /// Whether files that are not mapped stay open, since another process may remove them: those of the first segments.
  private let keepsFilesOpen: Bool
  private static let openFileLimit = 256

  /// - Parameters:
  ///   - lockFile: the store's file LOCK; `nil` where no file is ever shortened.
  ///   - pageFile: the store's file FOLLOW, where it announces its writes.
  ///   - keepsFilesOpen: whether another process may remove files that are still read.
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

  /// Closes what was left open for the next read by a call, at the end of a work that made many.
  package func closeReadFiles() { home.openFiles.closeAll() }

  /// To be called before the store's lock is given up: what still reads is seen by the next session.
  package func endSession() {
    closeReadFiles()
    home.readers.endSession()
  }

  /// Makes a new segment. A durable name is the caller's part. Where it throws, no file is left.
  ///
  /// - Parameter durably: whether to sync the header. Without it, a sync of the log has to reach the
  ///   segment before anything in it is durable.
  package func create(
    id: SegmentID, salt: UInt64, baseSequence: SequenceNumber, baseTime: Int64, capacity: Int,
    allocating byteCount: Int, compactedAt: SequenceNumber = 0, durably: Bool
  ) throws(StoreError) -> Segment {
    let header = SegmentHeader(
      storeIdentifier: storeIdentifier, id: id, salt: salt, baseSequence: baseSequence,
      baseTime: baseTime)
    let name = FileName.segment(id)
    let granule = try table.reserve(capacity: capacity)
    do {
      let file = try directory.createFile(name)
      try file.allocate(from: 0, to: byteCount, orExtend: !usesMappings || !reservesBlocks)
      try header.encoded().withSpan { (bytes) throws(StoreError) in try file.write(bytes, at: 0) }
      // DURABILITY: the header and the length are on disk before a manifest that vouches for them.
      if durably { try file.synchronize() }
      let segment = Segment(
        header: header, file: SegmentFile(file, home: home, readOnly: false, isKept: true),
        mapping: try map(file, byteCount: capacity, writable: true), capacity: capacity,
        granule: granule, allocatedByteCount: byteCount,
        syncedByteCount: durably ? SegmentHeader.byteCount : 0,
        compactedAt: compactedAt, usage: SegmentUsage(total: table.total))
      table.publish(segment)
      return segment
    } catch {
      table.release(granule: granule, capacity: capacity)
      // A failed allocation leaves what it got: a partial file.
      try? directory.unlink(name)
      throw error
    }
  }

  /// Opens a segment that the manifest lists.
  ///
  /// - Parameters:
  ///   - capacity: its capacity if it is to be appended to, here or by whom this follows, else `nil`: it gets a
  ///     read-only mapping of its length.
  ///   - byteCount: where its records end, or `nil` where only the file's length is known.
  ///   - usage: what its records amount to, where that is known.
  ///   - place: its first granule, if it has one already.
  ///   - note: told how long the file is.
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

  /// The same segment without what lies at `end` or behind it. Nobody finds it before it is put into
  /// the table.
  package func shortened(_ segment: Segment, to end: Int) throws(StoreError) -> Segment {
    segment.shortened(
      to: end, mapping: try map(segment.file.open(), byteCount: end, writable: false))
  }

  /// Opens the file of a listed segment and checks its header against the manifest.
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
    let header = try bytes.withSpan { (bytes) throws(StoreError) in
      try SegmentHeader(decoding: bytes, file: name)
    }
    guard header.id == id, header.salt == salt, header.storeIdentifier == storeIdentifier else {
      throw .corrupt(
        Corruption(file: name, offset: SegmentHeader.identifierOffset, cause: .badHeader))
    }
    return (file, header, byteCount)
  }

  /// A mapping, or `nil` where the store does without, for this segment or for all, or the process has no room for another:
  /// then reads are system calls.
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
