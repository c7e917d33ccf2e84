import CairnLibC
import FuzzSupport

/// The progress of the run, in a file next to the store. It survives the process that writes it.
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

  /// Operations that have begun. Only the last of them may be unacknowledged.
  var begun: Int {
    get { load(0) }
    set { store(newValue, 0) }
  }

  /// Operations that were acknowledged.
  var acknowledged: Int {
    get { load(1) }
    set { store(newValue, 1) }
  }

  /// Operations that did not happen because of a kill.
  var skipped: Set<Int> { Set((0..<load(3)).map { load(4 + $0) }) }

  func skip(_ number: Int) {
    let count = load(3)
    store(number, 4 + count)
    store(count + 1, 3)
  }

  /// Bytes of values that were written.
  var writtenByteCount: Int {
    get { load(2) }
    set { store(newValue, 2) }
  }
}
