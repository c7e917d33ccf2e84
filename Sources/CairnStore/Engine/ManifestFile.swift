/// How the manifest's file is read and replaced.
package struct ManifestFile: Sendable {
  package let directory: Directory

  package init(directory: Directory) { self.directory = directory }

  /// The manifest, or `nil` where there is none.
  package func read() throws(StoreError) -> Manifest? {
    guard let file = try directory.openFile(FileName.manifest, mode: .readOnly) else { return nil }
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
    let bytes = manifest.encoded()
    var file = try openSpare()
    if planted(.manifestWrittenInPlace),
      let manifest = try directory.openFile(FileName.manifest, mode: .readWrite)
    {
      file = manifest
    }
    try file.allocate(from: 0, to: bytes.count, orExtend: true)
    return Prepared(file: file, bytes: bytes)
  }

  /// The file that the last replacement left ready, or a crash half written, or a new one.
  private func openSpare() throws(StoreError) -> File {
    if let file = try directory.openFile(FileName.newManifest, mode: .readWrite) { return file }
    return try directory.createFile(FileName.newManifest)
  }

  /// Takes the space for the replacement after this one, so that one is possible on a full disk.
  /// Whether it works out does not matter now.
  ///
  /// The removal of all needs none of this: the manifest before this one lies there already, and
  /// its list of segments, which this one may have made longer by one, has room for their ids.
  package func reserve(_ manifest: Manifest) {
    let byteCount = (2 * manifest.encoded().count + 4095) & ~4095
    guard let file = try? openSpare() else { return }
    try? file.allocate(from: 0, to: byteCount, orExtend: true)
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
    if !planted(.noManifestSync) { try prepared.file.synchronize() }
  }

  /// Puts a replacement that was written into place. After a failure it is not known which of the
  /// two will be found after a power loss.
  package func install() throws(StoreError) {
    // DURABILITY: both are atomic: a crash leaves one manifest or the other. The exchange keeps the
    // blocks of the old one for the next, where on a full disk a rename could lose them to others.
    if planted(.manifestWrittenInPlace), try directory.names().contains(FileName.manifest) {
      return
    }
    if try !directory.exchange(FileName.newManifest, with: FileName.manifest) {
      try directory.rename(FileName.newManifest, to: FileName.manifest)
    }
    try settle()
  }

  /// Puts the names on disk, of which a crash may have left either order.
  package func settle() throws(StoreError) {
    if planted(.noDirectorySync) { return }
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
