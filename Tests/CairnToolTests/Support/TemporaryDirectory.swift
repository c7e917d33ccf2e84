import CairnLibC

/// A test's own directory, which is removed when the test ends. Names in it are bytes.
final class TemporaryDirectory: Sendable {
  let path: String

  init(in parent: String = "/tmp") throws {
    var template = Array("\(parent)/cairn-tool-tests.XXXXXX".utf8CString)
    // SAFETY: the template is terminated, and the call keeps its length.
    guard unsafe mkdtemp(&template) != nil else {
      throw SupportError(call: "mkdtemp", number: errno)
    }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    // `rm` can remove trees deeper than a path may be long.
    if let child = try? spawn("/bin/rm", ["-rf", path].map { Array($0.utf8) }) {
      _ = try? waitForEnd(of: child)
    }
  }

  /// The full path of a name in the directory.
  func callAsFunction(_ name: String) -> String { path + "/" + name }

  func makeFile(_ name: String, _ contents: [UInt8]) throws {
    try makeFile(Array(name.utf8), contents)
  }

  func makeFile(_ name: [UInt8], _ contents: [UInt8]) throws {
    let file = try check(
      "open", unsafe open(terminated(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644))
    defer { close(file) }
    var written = 0
    while written < contents.count {
      // SAFETY: the pointer to the array is used for the call only, within its bounds.
      written += try check(
        "write",
        unsafe contents.withUnsafeBytes { bytes in
          unsafe write(file, bytes.baseAddress.map { unsafe $0 + written }, bytes.count - written)
        })
    }
  }

  /// Makes a file that is one hole.
  func makeSparseFile(_ name: String, byteCount: Int) throws {
    try makeFile(name, [])
    try check("truncate", unsafe truncate(path + "/" + name, off_t(byteCount)))
  }

  func contents(_ name: String) throws -> [UInt8] { try contents(Array(name.utf8)) }

  func contents(_ name: [UInt8]) throws -> [UInt8] {
    let file = try check("open", unsafe open(terminated(name), O_RDONLY | O_CLOEXEC))
    defer { close(file) }
    var contents: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      // SAFETY: the call writes at most the buffer's size.
      let count = try check("read", unsafe read(file, &buffer, 65_536))
      if count == 0 { return contents }
      contents += buffer.prefix(count)
    }
  }

  func makeDirectory(_ name: String) throws {
    try check("mkdir", unsafe mkdir(terminated(Array(name.utf8)), 0o755))
  }

  func makeLink(_ name: String, to target: String) throws {
    try check("symlink", unsafe symlink(target, terminated(Array(name.utf8))))
  }

  func makePipe(_ name: String) throws {
    try check("mkfifo", unsafe mkfifo(terminated(Array(name.utf8)), 0o644))
  }

  func exists(_ name: String) -> Bool {
    unsafe access(terminated(Array(name.utf8)), F_OK) == 0
  }

  /// Makes nested directories of one name, with a file `leaf` in the deepest, without ever using a
  /// path of more than one name.
  func makeChain(_ name: String, depth: Int, leaf: [UInt8]) throws {
    var directory = try check("open", unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
    for _ in 0..<depth {
      try check("mkdirat", unsafe mkdirat(directory, name, 0o755))
      let next = try check(
        "openat", unsafe openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
      close(directory)
      directory = next
    }
    defer { close(directory) }
    let file = try check(
      "openat", unsafe openat(directory, "leaf", O_WRONLY | O_CREAT | O_CLOEXEC, 0o644))
    defer { close(file) }
    // SAFETY: the pointer is used for the call only, within the array's bounds.
    try check("write", unsafe write(file, leaf, leaf.count))
  }

  // Bytes with a zero after them, the C library's form of a path.
  private func terminated(_ name: [UInt8]) -> [CChar] {
    (Array(path.utf8) + [UInt8(ascii: "/")] + name + [0]).map { CChar(bitPattern: $0) }
  }

  @discardableResult
  private func check<Number: FixedWidthInteger>(
    _ call: String, _ result: Number
  ) throws -> Number {
    if result < 0 { throw SupportError(call: call, number: errno) }
    return result
  }
}
