import FuzzSupport
import Glibc

/// How far the run has come, in a file beside the store, which outlives the process that writes it.
final class Progress {
  private let descriptor: Int32

  init(path: String) throws {
    descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw FuzzFailure("cannot open \(path)") }
  }

  deinit { close(descriptor) }

  private func load(_ place: Int) -> Int {
    var value: Int64 = 0
    let count = unsafe pread(descriptor, &value, 8, off_t(place * 8))
    return count == 8 ? Int(value) : 0
  }

  private func store(_ value: Int, _ place: Int) {
    var value = Int64(value)
    let count = unsafe pwrite(descriptor, &value, 8, off_t(place * 8))
    precondition(count == 8, "the progress cannot be written")
  }

  /// Operations that have begun, but for which of them the last was acknowledged.
  var begun: Int {
    get { load(0) }
    set { store(newValue, 0) }
  }

  /// Operations that were acknowledged.
  var acknowledged: Int {
    get { load(1) }
    set { store(newValue, 1) }
  }

  /// Bytes of values that were written.
  var writtenByteCount: Int {
    get { load(2) }
    set { store(newValue, 2) }
  }
}
