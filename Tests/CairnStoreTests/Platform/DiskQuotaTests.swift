import CairnStore
import FuzzSupport
import Testing

@Suite("The disk space of a directory's files")
struct DiskQuotaTests {
  private let scratch: TemporaryDirectory
  private let directory: Directory

  init() throws {
    scratch = try TemporaryDirectory()
    directory = try Directory(
      path: scratch.path, fileSystem: SystemFileSystem(), readOnly: false, byteLimit: 1 << 20)
  }

  private func isRefused(_ body: () throws(StoreError) -> Void) -> Bool {
    guard case .noSpace(_, _, .quota) = storeError(body) else { return false }
    return true
  }

  @Test("Nothing is allocated beyond the limit, and freed space is found again")
  func limit() throws {
    let first = try directory.createFile("first")
    let second = try directory.createFile("second")
    try first.allocate(from: 0, to: 600 << 10, orExtend: true)
    #expect(
      isRefused { () throws(StoreError) in
        try second.allocate(from: 0, to: 600 << 10, orExtend: true)
      })
    #expect(try directory.freeByteCount() < 424 << 10)
    try first.truncate(to: 0)
    try second.allocate(from: 0, to: 600 << 10, orExtend: true)
    try second.allocate(from: 600 << 10, to: 900 << 10, orExtend: true)
    #expect(try directory.freeByteCount() < 124 << 10)
  }

  @Test("Taken bytes count before they are allocated, whatever a check shows")
  func pending() throws {
    let quota = DiskQuota(byteLimit: 1 << 20)
    quota.begin { 0 }
    #expect(try quota.take(600 << 10))
    // A check that does not find the bytes yet.
    #expect(try quota.freeByteCount < 400 << 10)
    #expect(try !quota.take(600 << 10))
    quota.settle(600 << 10)
    #expect(try quota.take(600 << 10))
  }

  @Test("If no descriptor is left for a check, that is the error, not a lack of space")
  func noDescriptor() throws {
    let system = FaultyFileSystem()
    let directory = try Directory(
      path: scratch.path, fileSystem: system, readOnly: false, byteLimit: 1 << 20)
    let file = try directory.createFile("file")
    try file.allocate(from: 0, to: 600 << 10, orExtend: true)
    try file.truncate(to: 0)
    for call in [FaultyFileSystem.Call.names, .status] {
      system.arm(.init(call: call, index: 0, errorNumber: SystemError.tooManyOpenFiles))
      let error = storeError { try file.allocate(from: 0, to: 600 << 10, orExtend: true) }
      guard case .system(let failure)? = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
      #expect(failure.errorNumber == SystemError.tooManyOpenFiles)
    }
    system.arm(nil)
    try file.allocate(from: 0, to: 600 << 10, orExtend: true)
  }

  @Test("Files just below the limit may not exceed it")
  func almostFull() throws {
    let quota = DiskQuota(byteLimit: 1 << 20)
    quota.begin { 900 << 10 }
    #expect(try !quota.take(100 << 10))
    #expect(try quota.take(50 << 10))
  }

  @Test("A manifest is never refused, and counts")
  func manifest() throws {
    let file = try directory.createFile("file")
    let manifest = try directory.createFile("MANIFEST")
    try file.allocate(from: 0, to: 960 << 10, orExtend: true)
    #expect(
      isRefused { () throws(StoreError) in
        try manifest.allocate(from: 0, to: 4096, orExtend: true)
      })
    try manifest.allocate(from: 0, to: 4096, orExtend: true, mayExceedQuota: true)
    #expect(try manifest.status().allocatedByteCount >= 4096)
    #expect(
      isRefused { () throws(StoreError) in
        try file.allocate(from: 960 << 10, to: 964 << 10, orExtend: true)
      })
  }

  @Test("Written bytes count")
  func written() throws {
    let file = try directory.createFile("file")
    try file.allocate(from: 0, to: 4096, orExtend: true)
    let bytes = [UInt8](repeating: 1, count: 700 << 10)
    try bytes.withBytes { (bytes) throws(StoreError) in try file.write(bytes, at: 4096) }
    #expect(
      isRefused { () throws(StoreError) in
        try file.allocate(from: 704 << 10, to: 1100 << 10, orExtend: true)
      })
  }

  @Test(
    "Files above the limit may take an eighth of it more, and less each time they shrink"
  )
  func overLimit() throws {
    let large = try FileSystemScratch.file(in: scratch.path, byteCount: 3 << 20)
    let file = try directory.createFile("file")
    try file.allocate(from: 0, to: 64 << 10, orExtend: true)
    #expect(
      isRefused { () throws(StoreError) in
        try file.allocate(from: 64 << 10, to: 1 << 20, orExtend: true)
      })
    try large.truncate(to: 1 << 20)
    #expect(
      isRefused { () throws(StoreError) in
        try file.allocate(from: 64 << 10, to: 1 << 20, orExtend: true)
      })
    try large.truncate(to: 0)
    try file.allocate(from: 64 << 10, to: 900 << 10, orExtend: true)
    #expect(
      isRefused { () throws(StoreError) in
        try file.allocate(from: 900 << 10, to: 1 << 20, orExtend: true)
      })
  }

  /// A file that existed before the limit.
  private enum FileSystemScratch {
    static func file(in path: String, byteCount: Int) throws -> File {
      let directory = try Directory(path: path, fileSystem: SystemFileSystem(), readOnly: false)
      let file = try directory.createFile("large")
      try file.allocate(from: 0, to: byteCount, orExtend: true)
      return file
    }
  }
}
