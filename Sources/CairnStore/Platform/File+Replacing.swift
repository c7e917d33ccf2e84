extension File {
  /// Makes a file with these bytes, or puts it into the place of the one that has its name: whoever opens
  /// the path finds all of the old one or all of the new one. Mode 0600.
  package static func replace(
    at path: String, with bytes: RawSpan, fileSystem: any FileSystem
  ) throws(StoreError) {
    let name = Directory.lastName(of: path)
    guard !name.isEmpty, name != ".", name != ".." else {
      throw .unusableDestination(path: path, reason: "it names no file")
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
    // A name that no other call takes at the same time, and short whatever the other's length.
    let number = try naming { () throws(SystemError) in try fileSystem.randomBytes(count: 8) }
      .reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    let newName = ".cairn-\(String(number, radix: 36))"
    let descriptor = try naming { () throws(SystemError) in
      try fileSystem.open(newName, in: directory, mode: .createNew)
    }
    let file = File(fileSystem: fileSystem, descriptor: descriptor, name: newName, path: path)
    do throws(StoreError) {
      try file.write(bytes, at: 0)
      // DURABILITY: the bytes before the name, or a power loss would leave an empty file in the place of
      // the old one.
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
}
