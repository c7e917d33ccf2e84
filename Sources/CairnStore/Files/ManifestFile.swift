/// Reads and replaces the manifest file.
package struct ManifestFile: Sendable {
  package let directory: Directory

  package init(directory: Directory) { self.directory = directory }

  /// The manifest, or `nil` if there is none.
  package func read() throws(StoreError) -> Manifest? { try read(FileName.manifest) }

  /// The manifest of a store that another process may be writing to. A file that is unlinked while
  /// it is being opened counts as missing, so the call retries.
  ///
  /// - Throws: `noStore` if there is no manifest.
  package func readBesideWriter() throws(StoreError) -> Manifest {
    for _ in 0..<20 {
      if let manifest = try read() { return manifest }
      pause(for: .milliseconds(1))
    }
    throw .noStore(path: directory.path)
  }

  private func read(_ name: String) throws(StoreError) -> Manifest? {
    guard let file = try directory.openFile(name, mode: .readOnly) else { return nil }
    let byteCount = try file.status().byteCount
    guard byteCount <= Manifest.maximumByteCount else {
      throw .corrupt(Corruption(file: FileName.manifest, offset: 0, cause: .badLength))
    }
    var bytes = [UInt8](repeating: 0, count: byteCount)
    let count = try file.read(into: &bytes, at: 0)
    bytes.removeLast(byteCount - count)
    return try Manifest(decoding: bytes.rawSpan)
  }

  /// A replacement that is written, but neither on disk nor in place.
  package struct Prepared: ~Copyable {
    fileprivate let file: File
  }

  /// Writes a replacement. Whatever fails, even a write, the old manifest stays in place.
  package func prepare(_ manifest: Manifest) throws(StoreError) -> Prepared {
    try prepare(manifest, in: try openSpare())
  }

  private func prepare(_ manifest: Manifest, in file: File) throws(StoreError) -> Prepared {
    let bytes = manifest.encoded()
    try file.allocate(from: 0, to: bytes.count, orExtend: true, mayExceedQuota: true)
    try file.write(bytes.rawSpan, at: 0)
    try file.truncate(to: bytes.count)
    return Prepared(file: file)
  }

  /// The spare file: left by the last replacement, half written by a crash, or new.
  private func openSpare() throws(StoreError) -> File { try open(FileName.newManifest) }

  private func open(_ name: String) throws(StoreError) -> File {
    if let file = try directory.openFile(name, mode: .readWrite) { return file }
    return try directory.createFile(name)
  }

  /// Allocates space for the next replacement, which then succeeds even on a full disk. Ignores
  /// failures.
  ///
  /// A manifest that removes everything fits too: it has new places, and ids in the place of
  /// segments.
  package func reserve(_ manifest: Manifest) {
    let byteCount = (2 * manifest.encoded().count + 4095) & ~4095
    guard let file = try? openSpare() else { return }
    try? file.allocate(from: 0, to: byteCount, orExtend: true, mayExceedQuota: true)
  }

  /// Syncs the replacement. After a failure, nothing more may be written.
  package func synchronize(_ prepared: borrowing Prepared) throws(StoreError) {
    // DURABILITY: the new contents are on disk before the name points to them; a crash before the
    // exchange leaves the old manifest, and a file that the next replacement overwrites.
    try prepared.file.synchronize()
  }

  /// Puts a written replacement into place. After a failure, a power loss may leave either
  /// manifest.
  package func install() throws(StoreError) {
    try exchange()
    try settle()
  }

  /// Puts the first manifest of a directory into place.
  package func installFirst() throws(StoreError) {
    try directory.rename(FileName.newManifest, to: FileName.manifest)
    try settle()
  }

  /// Puts a written replacement into place, without a sync. After `noSpace`, the names are as they
  /// were.
  func exchange() throws(StoreError) { try exchange(FileName.newManifest) }

  /// Gives up the replaced manifest's file after an exchange without a sync.
  func dropSpare() throws(StoreError) {
    // DURABILITY: a power cut may undo the exchange, and that file is then the manifest. So it is
    // never written to again.
    try directory.unlink(FileName.newManifest)
  }

  /// Puts the replacement with this name into place, without a sync. After `noSpace`, the names are
  /// as they were. Fails if there is no manifest: the directory is being removed, and the manifest
  /// would be left over without its segments.
  private func exchange(_ name: String) throws(StoreError) {
    // DURABILITY: both calls are atomic: a crash leaves one manifest or the other. The exchange
    // keeps the old file's blocks for the next replacement. On a full disk, a rename could lose
    // them to other programs.
    if try !directory.exchange(name, with: FileName.manifest) {
      try directory.rename(name, to: FileName.manifest)
    }
  }

  // MARK: The next session's manifest

  /// The manifest for the start of the session that follows `manifest`, if it is ready.
  package func readNext(after manifest: Manifest, in bootIdentifier: [UInt8]) -> Manifest? {
    // If anything is wrong with the file, the caller makes a new one.
    guard let next = try? read(FileName.nextManifest),
      next.nextID <= FormatVersion.writableLimit, next.continues(manifest, in: bootIdentifier)
    else { return nil }
    return next
  }

  /// Prepares the manifest for the start of the next session.
  ///
  /// - Parameter manifest: the clean manifest before it. Its next id moves past the reserved ones.
  package func makeReady(
    after manifest: inout Manifest, in bootIdentifier: [UInt8], at time: Timestamp
  ) throws(StoreError) -> Manifest {
    let salts = try directory.randomNumbers(count: Manifest.reservedSegmentCount)
    let next = manifest.continued(in: bootIdentifier, at: time, salts: salts)
    // Leave the spare file to the manifests of this session: a full disk has no room for another.
    try synchronize(try prepare(next, in: try open(FileName.newNextManifest)))
    // DURABILITY: the contents are on disk before the file gets this name. So whatever a crash does
    // to the name, a file that has it can be put into place without a sync.
    try directory.rename(FileName.newNextManifest, to: FileName.nextManifest)
    manifest.nextID = next.nextID
    return next
  }

  /// Puts the prepared manifest into place, without a sync.
  package func installNext() throws(StoreError) {
    // DURABILITY: the exchange is atomic. A power cut may undo it: the next open then finds the
    // clean manifest and the writes of this session. None of those writes was durable, because a
    // sync of the log syncs the directory first.
    try exchange(FileName.nextManifest)
  }

  // MARK: Names

  /// Makes the names durable. Until then, a crash may leave them in either order.
  package func settle() throws(StoreError) {
    do throws(StoreError) {
      // DURABILITY: nothing that relies on the new manifest is done before its name is on disk.
      try directory.synchronize()
    } catch {
      // DURABILITY: on disk the spare file may still be the manifest, so it must not be
      // overwritten.
      try? directory.unlink(FileName.newManifest)
      throw error
    }
  }
}
