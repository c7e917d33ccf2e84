import CairnEssentials
import CairnLibC

/// A test's own directory, which is removed with the last reference.
final class TemporaryDirectory: Sendable {
  /// Where a test's files are.
  enum Medium: String, Sendable, CaseIterable {
    /// Memory, where syncs cost nothing: for tests of behaviour.
    case memory = "/dev/shm"
    /// A filesystem with a device behind it: for tests of syncs and of SIGKILL.
    case disk = "/tmp"
  }

  let path: String

  init(on medium: Medium = .memory) throws {
    let parent = unsafe access(medium.rawValue, W_OK) == 0 ? medium.rawValue : "/tmp"
    var template = Array("\(parent)/cairn-store-tests.XXXXXX".utf8CString)
    // SAFETY: the template is terminated, and the call keeps its length.
    guard unsafe mkdtemp(&template) != nil else {
      throw SupportError(call: "mkdtemp", number: errno)
    }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The full path of a name in the directory.
  func callAsFunction(_ name: String) -> String { path + "/" + name }

  /// Where a test puts its store.
  var store: String { self("store") }
}

/// The failure of a call that a test needs.
struct SupportError: Error {
  var call: String
  var number: Int32
}

/// Throws if a call of the C library failed.
@discardableResult
func check<Number: FixedWidthInteger & SignedNumeric>(
  _ call: String, _ result: Number
) throws -> Number {
  if result < 0 { throw SupportError(call: call, number: errno) }
  return result
}
