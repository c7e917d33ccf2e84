import CairnLibC

/// A filesystem of a few megabytes. Only root may mount one, and not on every machine.
package final class TinyDisk: Sendable {
  package static let isAvailable = (try? TinyDisk(byteCount: 1 << 20)) != nil

  private let parent: String
  package let byteCount: Int
  package var path: String { parent + "/disk" }
  private var filler: String { path + "/filler" }

  package init(byteCount: Int) throws {
    self.byteCount = byteCount
    var template = Array("/dev/shm/cairn-disk-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw FuzzFailure("mkdtemp: \(errno)") }
    parent = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    guard unsafe mkdir(path, 0o700) == 0, mountMemory(at: path, byteCount: byteCount) else {
      let failure = FuzzFailure("mount: \(errno)")
      clean()
      throw failure
    }
  }

  deinit {
    unmountMemory(at: path)
    clean()
  }

  private func clean() {
    _ = unsafe rmdir(path)
    _ = unsafe rmdir(parent)
  }

  package var freeByteCount: Int {
    var status = statvfs()
    // SAFETY: the structure lives across the call.
    return unsafe statvfs(path, &status) == 0 ? Int(status.f_bavail) * Int(status.f_frsize) : 0
  }

  /// Takes all but this much space, as other programs would.
  package func leave(_ byteCount: Int) throws {
    try take { self.freeByteCount > byteCount }
  }

  /// Takes all the space that is left, up to the last page.
  package func fill() throws { try take { true } }

  /// Releases what `leave` and `fill` took.
  package func free() { _ = unsafe unlink(filler) }

  private func take(while isWanted: () -> Bool) throws {
    let file = unsafe open(filler, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard file >= 0 else {
      // There is no room even for a name.
      if errno == ENOSPC { return }
      throw FuzzFailure("open: \(errno)")
    }
    defer { close(file) }
    let page = [UInt8](repeating: 1, count: 4096)
    // SAFETY: the pointer is used for the call only, within the array's bounds.
    while isWanted(), unsafe write(file, page, page.count) > 0 {}
  }
}
