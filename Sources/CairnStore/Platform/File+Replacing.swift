extension File {
  /// Creates a file with these bytes, or atomically replaces the existing one. Whoever opens the
  /// path finds either the complete old file or the complete new one. Mode 0600.
  ///
  /// Writes the bytes under another name first: `.cairn-export-` and 13 letters and digits, locked
  /// while in use. If a process dies and leaves such a file, another process removes the file on
  /// its first export into the same directory.
  package static func replace(
    at path: String, with bytes: RawSpan, fileSystem: any FileSystem
  ) throws(StoreError) {
    if let flaw = Directory.flaw(of: path) { throw .unusable(path: path, reason: flaw) }
    let name = Directory.lastName(of: path)
    guard !name.isEmpty, name != ".", name != ".." else {
      throw .unusable(path: path, reason: "it names no file")
    }
    func naming<Value>(_ body: () throws(SystemError) -> Value) throws(StoreError) -> Value {
      do { return try body() } catch {
        throw error.storeError(path: path, neededByteCount: bytes.byteCount)
      }
    }
    let directory = try naming { () throws(SystemError) in
      try fileSystem.openDirectory(path: Directory.parentPath(of: path))
    }
    defer { fileSystem.close(directory) }
    // A leftover that cannot be removed does no harm.
    try? removeLeftovers(in: directory, fileSystem: fileSystem)
    let (file, newName) = try naming { () throws(SystemError) in
      try newFile(in: directory, for: path, fileSystem: fileSystem)
    }
    do throws(StoreError) {
      try file.write(bytes, at: 0)
      // DURABILITY: the bytes are on disk before the name, or a power cut could leave an empty file
      // in place of the old one.
      try file.synchronize()
      try naming { () throws(SystemError) in
        try fileSystem.rename(newName, in: directory, to: name, in: directory)
        try fileSystem.synchronize(directory)
      }
    } catch {
      try? fileSystem.unlink(newName, in: directory)
      throw error
    }
  }

  /// Random digits follow, as many as the largest number has, so that no other file has the name.
  private static let prefix = ".cairn-export-"
  private static let digitCount = 13
  /// Directories already searched for leftovers.
  private static let swept = Lock<Set<FileIdentity>>([], isOfProcess: true)

  /// A new file with a unique name of fixed length. It is locked, so that no process takes it for a
  /// leftover.
  private static func newFile(
    in directory: Int32, for path: String, fileSystem: any FileSystem
  ) throws(SystemError) -> (File, String) {
    while true {
      let number = try fileSystem.randomBytes(count: 8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      let digits = String(number, radix: 36)
      let name = prefix + String(repeating: "0", count: digitCount - digits.utf8.count) + digits
      let descriptor = try fileSystem.open(name, in: directory, mode: .createNew)
      let file = File(fileSystem: fileSystem, descriptor: descriptor, name: name, path: path)
      do throws(SystemError) {
        guard try fileSystem.lock(descriptor, exclusively: true),
          try fileSystem.status(of: descriptor).linkCount == 1
        else {
          // Another process is removing leftovers, and has removed this file or soon will.
          continue
        }
        return (file, name)
      } catch {
        // If files cannot be locked, no process removes leftovers either.
        return (file, name)
      }
    }
  }

  /// Removes files that look exactly like those of `replace` and are not locked. Done once per
  /// process for each directory, because a directory may contain many files.
  private static func removeLeftovers(
    in directory: Int32, fileSystem: any FileSystem
  ) throws(SystemError) {
    guard let identity = try fileSystem.status(of: directory).identity,
      swept.withLock({ $0.insert(identity).inserted })
    else { return }
    for name in try fileSystem.names(in: directory) where isOfReplacement(name) {
      // A file that cannot be opened does not stop the search.
      guard let descriptor = try? fileSystem.open(name, in: directory, mode: .readOnly) else {
        continue
      }
      defer { fileSystem.close(descriptor) }
      guard let status = try? fileSystem.status(of: descriptor), status.kind == .regular,
        status.linkCount == 1, status.owner == fileSystem.userIdentifier(),
        status.permissions == 0o600,
        (try? fileSystem.lock(descriptor, exclusively: true)) == true
      else { continue }
      try? fileSystem.unlink(name, in: directory)
    }
  }

  private static func isOfReplacement(_ name: String) -> Bool {
    guard name.hasPrefix(prefix) else { return false }
    let digits = name.utf8.dropFirst(prefix.utf8.count)
    return digits.count == digitCount
      && digits.allSatisfy { (48...57).contains($0) || (97...122).contains($0) }
  }
}
