#if Peers
  import Cairn
  import Testing

  @testable import CairnBench

  @Suite("The design of YYKVStorage")
  struct YYKVStoreTests {
    private static let limit = 20 << 10

    @Test("keeps values in files only while they are larger than 20 KiB")
    func files() throws {
      let directory = try TemporaryDirectory()
      let store = try YYKVStore(at: directory.path, options: StoreOptions())
      func fileCount() throws -> Int { try DirectoryTree.names(in: directory.path + "/data").count }
      let keys = (0..<3).map { Array("key \($0)".utf8) }
      try store.put([UInt8](repeating: 1, count: Self.limit), keys[0])
      #expect(try fileCount() == 0)
      for key in keys { try store.put([UInt8](repeating: 2, count: Self.limit + 1), key) }
      #expect(try fileCount() == 3)
      try store.put([3], keys[0])
      #expect(try fileCount() == 2)
      #expect(try store.got(keys[0]) == [3])
      #expect(try store.remove(keys[1]))
      #expect(try fileCount() == 1)
      #expect(try store.got(keys[2])?.count == Self.limit + 1)
      try store.close()
    }

    @Test("forgets a key whose file is gone")
    func lostFile() throws {
      let directory = try TemporaryDirectory()
      let store = try YYKVStore(at: directory.path, options: StoreOptions())
      let key = Array("key".utf8)
      try store.put([UInt8](repeating: 1, count: Self.limit + 1), key)
      for name in try DirectoryTree.names(in: directory.path + "/data") {
        DirectoryTree.remove(directory.path + "/data/" + name)
      }
      #expect(try store.got(key) == nil)
      #expect(try !store.remove(key))
      try store.close()
    }

    @Test("records when a value was read")
    func accessTimes() throws {
      let directory = try TemporaryDirectory()
      let store = try YYKVStore(at: directory.path, options: StoreOptions())
      let keys = [Array("read".utf8), Array("not read".utf8)]
      for key in keys { try store.put([1], key) }
      let table = try SQLiteConnection(directory.path + "/manifest.sqlite", store: "test")
      try table.run("UPDATE manifest SET last_access_time = 0")
      #expect(try store.got(keys[0]) == [1])
      let select = try table.prepare("SELECT key FROM manifest WHERE last_access_time > 0")
      let found = try select.run { _ in
      } row: {
        $0.bytes(0)
      }
      #expect(found == keys[0])
      try table.close()
      try store.close()
    }

    @Test("names a file by a hash of the key")
    func names() {
      let names = (0..<10_000).map { number in
        Array("key \(number)".utf8).withBytes { YYKVFiles.name(of: $0) }
      }
      #expect(Set(names).count == names.count)
      #expect(names.allSatisfy { $0.utf8.count == 32 && $0.allSatisfy(\.isHexDigit) })
    }
  }
#endif
