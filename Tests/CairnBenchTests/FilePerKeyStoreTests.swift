import Cairn
import CairnLibC
import Testing

@testable import CairnBench

@Suite("The file-per-key store")
struct FilePerKeyStoreTests {
  private static let oddKeys: [[UInt8]] = [
    Array("plain-Key_1~".utf8), Array(".".utf8), Array("..".utf8), Array("a/b".utf8),
    Array(".temporary".utf8), Array("%41".utf8), Array("A".utf8), Array("ü 猫".utf8), [0],
    [0, 0], [255, 10, 13], Array(repeating: UInt8(ascii: "/"), count: 85),
  ]

  private static let durabilities: [Durability] = [.process, .durable]

  @Test("finds what was written, whatever the key", arguments: durabilities)
  func oddKeys(durability: Durability) throws {
    let directory = try TemporaryDirectory()
    let options = StoreOptions(durability: durability)
    var store = try FilePerKeyStore(at: directory.path + "/s", options: options)
    for (index, key) in Self.oddKeys.enumerated() {
      try store.put(Array(repeating: UInt8(index), count: index * 1_000), key)
    }
    try store.close()
    store = try FilePerKeyStore(at: directory.path + "/s", options: options)
    for (index, key) in Self.oddKeys.enumerated() {
      let value = Array(repeating: UInt8(index), count: index * 1_000)
      #expect(try store.got(key) == value)
      #expect(try store.gotInPlace(key) == value)
    }
    #expect(try store.values(forKeys: Self.oddKeys).allSatisfy { $0 != nil })
    // One file per key, and the folder of temporary files.
    #expect(try DirectoryTree.names(in: store.path).count == Self.oddKeys.count + 1)
    for key in Self.oddKeys {
      #expect(try store.remove(key))
      #expect(try !store.remove(key))
      #expect(try store.got(key) == nil)
    }
    try store.close()
  }

  @Test("refuses keys that no file name can hold", arguments: [0, 86, 256])
  func impossibleKeys(byteCount: Int) throws {
    let directory = try TemporaryDirectory()
    let store = try FilePerKeyStore(at: directory.path, options: StoreOptions())
    let key = [UInt8](repeating: UInt8(ascii: "/"), count: byteCount)
    #expect(throws: BenchFailure.self) { try store.put([1], key) }
    #expect(throws: BenchFailure.self) { try store.got(key) }
    #expect(try DirectoryTree.names(in: directory.path + "/.temporary").isEmpty)
    try store.close()
  }

  @Test("encodes reserved bytes as a percent sign and two digits")
  func names() throws {
    let key: [UInt8] = Array("a:b/c.d%".utf8) + [0xFF]
    let name = try key.withBytes { key throws in try FileName.encoded(key) }
    #expect(name == "a%3Ab%2Fc%2Ed%25%FF")
  }

  @Test("replaces a value whole: a reader with the old file open still reads the old value")
  func renames() throws {
    let directory = try TemporaryDirectory()
    let store = try FilePerKeyStore(at: directory.path, options: StoreOptions())
    let key = Array("k".utf8)
    try store.put(Array("old".utf8), key)
    let file = unsafe open(directory.path + "/k", O_RDONLY)
    defer { close(file) }
    try store.put(Array("newer".utf8), key)
    var bytes = [UInt8](repeating: 0, count: 16)
    // SAFETY: `read` fills at most the sixteen bytes.
    let count = unsafe read(file, &bytes, bytes.count)
    #expect(Array(bytes[..<max(0, count)]) == Array("old".utf8))
    #expect(try store.got(key) == Array("newer".utf8))
    try store.close()
  }

  @Test("removes what a crash left between writing and renaming")
  func leftovers() throws {
    let directory = try TemporaryDirectory()
    try FilePerKeyStore(at: directory.path, options: StoreOptions()).close()
    let leftover = directory.path + "/.temporary/0"
    let file = unsafe open(leftover, O_WRONLY | O_CREAT, 0o600)
    close(file)
    let store = try FilePerKeyStore(at: directory.path, options: StoreOptions())
    #expect(try DirectoryTree.names(in: directory.path + "/.temporary").isEmpty)
    try store.put([1], [2])
    #expect(try store.got([2]) == [1])
    try store.close()
  }

  @Test("sets the modification time when a value is read")
  func touches() throws {
    let directory = try TemporaryDirectory()
    let store = try FilePerKeyStore(at: directory.path, options: StoreOptions())
    let path = directory.path + "/k"
    try store.put([1], Array("k".utf8))
    let past = [timespec(tv_sec: 1_000, tv_nsec: 0), timespec(tv_sec: 1_000, tv_nsec: 0)]
    // SAFETY: two times are read, one structure is filled.
    #expect(unsafe utimensat(AT_FDCWD, path, past, 0) == 0)
    #expect(try store.got(Array("k".utf8)) == [1])
    var status = stat()
    #expect(unsafe stat(path, &status) == 0)
    #expect(status.st_mtim.tv_sec > 1_000_000)
    try store.close()
  }
}
