/// How the manifest's file is read and replaced.
package struct ManifestFile: Sendable {
  package let directory: Directory

  package init(directory: Directory) { self.directory = directory }

  /// The manifest, or `nil` where there is none.
  package func read() throws(StoreError) -> Manifest? { try read(FileName.manifest) }

  private func read(_ name: String) throws(StoreError) -> Manifest? {
    guard let file = try directory.openFile(name, mode: .readOnly) else { return nil }
    let byteCount = try file.status().byteCount
    guard byteCount <= Manifest.maximumByteCount else {
      throw .corrupt(Corruption(file: FileName.manifest, offset: 0, cause: .badLength))
    }
    var bytes = [UInt8](repeating: 0, count: byteCount)
    let count = try file.read(into: &bytes, at: 0)
    bytes.removeLast(byteCount - count)
    return try bytes.withSpan { (bytes) throws(StoreError) in try Manifest(decoding: bytes) }
  }

  /// A replacement that is written but not yet in place.
  package struct Prepared: ~Copyable {
    fileprivate let file: File
    fileprivate let bytes: [UInt8]
  }

  /// Takes the space for a replacement. A failure here has changed nothing.
  package func prepare(_ manifest: Manifest) throws(StoreError) -> Prepared {
    try prepare(manifest, in: try openSpare())
  }

  private func prepare(_ manifest: Manifest, in file: File) throws(StoreError) -> Prepared {
    let bytes = manifest.encoded()
    try file.allocate(from: 0, to: bytes.count, orExtend: true, mayExceedQuota: true)
    return Prepared(file: file, bytes: bytes)
  }

  /// The file that the last replacement left ready, or a crash half written, or a new one.
  private func openSpare() throws(StoreError) -> File { try open(FileName.newManifest) }

  private func open(_ name: String) throws(StoreError) -> File {
    if let file = try directory.openFile(name, mode: .readWrite) { return file }
    return try directory.createFile(name)
  }

  /// Takes the space for the replacement after this one, so that one is possible on a full disk.
  /// Whether it works out does not matter now.
  ///
  /// The removal of all needs none of this: the manifest before this one lies there already, and
  /// its list of segments, which this one may have made longer by one, has room for their ids.
  package func reserve(_ manifest: Manifest) {
    let byteCount = (2 * manifest.encoded().count + 4095) & ~4095
    guard let file = try? openSpare() else { return }
    try? file.allocate(from: 0, to: byteCount, orExtend: true, mayExceedQuota: true)
  }

  /// Writes a replacement out. After a failure the old manifest stands, but a sync that failed is
  /// a reason to write nothing more.
  package func write(_ prepared: borrowing Prepared) throws(StoreError) {
    try prepared.bytes.withSpan { (bytes) throws(StoreError) in
      try prepared.file.write(bytes, at: 0)
    }
    try prepared.file.truncate(to: prepared.bytes.count)
    // DURABILITY: the new contents are on disk before the name points to them; a crash before the
    // exchange leaves the old manifest, and a file that the next replacement overwrites.
    try prepared.file.synchronize()
  }

  /// Puts a replacement that was written into place. After a failure it is not known which of the
  /// two will be found after a power loss.
  package func install() throws(StoreError) {
    try exchange(FileName.newManifest)
    try settle()
  }

  /// Puts the replacement of that name into place, without a sync.
  private func exchange(_ name: String) throws(StoreError) {
    // DURABILITY: both are atomic: a crash leaves one manifest or the other. The exchange keeps the
    // blocks of the old one for the next, where on a full disk a rename could lose them to others.
    if try !directory.exchange(name, with: FileName.manifest) {
      try directory.rename(name, to: FileName.manifest)
    }
  }

  // MARK: The next session's

  /// The manifest that a session begins with after this one, if it is ready.
  package func readNext(after manifest: Manifest, in bootIdentifier: [UInt8]) -> Manifest? {
    // Whatever is wrong with it, a new one is made.
    guard let next = try? read(FileName.nextManifest), next.continues(manifest, in: bootIdentifier)
    else { return nil }
    return next
  }

  /// Makes ready the manifest that the next session begins with.
  ///
  /// - Parameter manifest: the clean one before it, which no longer gives out the ids that are
  ///   reserved.
  package func makeReady(
    after manifest: inout Manifest, in bootIdentifier: [UInt8], at time: Timestamp
  ) throws(StoreError) -> Manifest {
    let salts = try directory.randomNumbers(count: Manifest.reservedSegmentCount)
    let next = manifest.continued(in: bootIdentifier, at: time, salts: salts)
    try makeReady(next)
    manifest.nextID = next.nextID
    return next
  }

  /// Makes a manifest ready that can be put into place without a sync.
  package func makeReady(_ next: Manifest) throws(StoreError) {
    // The spare is left to the manifests of this session: on a full disk there is no other.
    try write(try prepare(next, in: try open(FileName.newNextManifest)))
    // DURABILITY: the contents are on disk before the name says so. Whatever becomes of the name in a
    // crash, a file that has it can be put into place without a sync.
    try directory.rename(FileName.newNextManifest, to: FileName.nextManifest)
  }

  /// Puts the manifest that was made ready into place, without a sync.
  package func installNext() throws(StoreError) {
    // DURABILITY: the exchange is atomic. A power loss may undo it: then the clean manifest is found
    // beside what this session wrote, of which nothing was durable; a sync of the log syncs the
    // directory first.
    try exchange(FileName.nextManifest)
  }

  // MARK: A removal of all

  /// Makes ready a manifest that removes all.
  package func makeReady(emptied manifest: Manifest) throws(StoreError) {
    // DURABILITY: not written over what has the name, which may be the manifest before the last removal. That
    // one may still be in place on disk where a sync has failed.
    try directory.unlink(FileName.emptiedManifest)
    try write(try prepare(manifest, in: try directory.createFile(FileName.emptiedManifest)))
  }

  /// Puts the manifest that removes all into place, without a sync.
  package func installEmptied() throws(StoreError) {
    // DURABILITY: the exchange is atomic. A power loss may undo it: then all that the old manifest lists is
    // still there, and what was written since is not durable; a sync of the log syncs the directory first.
    try exchange(FileName.emptiedManifest)
  }

  // MARK: Names

  /// Puts the names on disk, of which a crash may have left either order.
  package func settle() throws(StoreError) {
    do throws(StoreError) {
      // DURABILITY: nothing that relies on the new manifest is done before its name is on disk.
      try directory.synchronize()
    } catch {
      // DURABILITY: on disk the spare may still be the manifest, so nothing is written into it.
      try? directory.unlink(FileName.newManifest)
      throw error
    }
  }
}
