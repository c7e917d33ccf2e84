internal import CairnLibC
internal import Synchronization

/// The kernel's small text files that describe the system, below a root: `/`, or a directory in a
/// test.
struct SystemFiles: Sendable {
  /// Notes that a file could not be opened because no descriptor was left.
  final class Shortage: Sendable {
    let isNoted = Atomic(false)
  }

  /// Prefixes each path.
  var root: String
  /// Whether to act as if no descriptor were left: for tests.
  var lacksDescriptors: @Sendable () -> Bool = { false }
  let shortage = Shortage()

  /// Whether no file exists at a path.
  func isMissing(_ path: String) -> Bool {
    unsafe access(root + path, F_OK) != 0 && errno == ENOENT
  }

  /// Opens a file.
  func descriptor(of path: String, _ flags: Int32) -> Int32? {
    let isShort = lacksDescriptors()
    let descriptor = isShort ? -1 : unsafe open(root + path, flags | O_CLOEXEC)
    if descriptor >= 0 { return descriptor }
    if isShort || errno == EMFILE || errno == ENFILE {
      shortage.isNoted.store(true, ordering: .relaxed)
    }
    return nil
  }

  /// The text of a file, or `nil` if it cannot be read.
  func text(_ path: String) -> String? {
    guard let descriptor = descriptor(of: path, O_RDONLY) else { return nil }
    defer { close(descriptor) }
    return Self.text(of: descriptor)
  }

  /// The text of an open file, from its beginning.
  static func text(of descriptor: Int32) -> String? {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let offset = bytes.count
      // SAFETY: the buffer has the given length.
      let count = unsafe buffer.withUnsafeMutableBytes {
        unsafe pread(descriptor, $0.baseAddress, $0.count, off_t(offset))
      }
      if count < 0 && errno == EINTR { continue }
      if count < 0 { return nil }
      if count == 0 { return String(decoding: bytes, as: UTF8.self) }
      bytes += buffer[..<count]
      // None of these files is that long.
      if bytes.count > 1 << 20 { return nil }
    }
  }

  /// The number in a file, or `nil` if the file has no number, as with `max`.
  func number(_ path: String) -> UInt64? {
    text(path).flatMap { UInt64($0.prefix { !$0.isWhitespace }) }
  }

  /// The number after a name, in a file with a name and a number on each line.
  func number(named name: String, in path: String) -> UInt64? {
    text(path).flatMap { Self.number(named: name, inText: $0) }
  }

  static func number(named name: String, inText text: String) -> UInt64? {
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ")
      if words.count == 2, words[0] == name { return UInt64(words[1]) }
    }
    return nil
  }
}
