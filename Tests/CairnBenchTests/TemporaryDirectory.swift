import Cairn
import CairnLibC
import Testing

@testable import CairnBench

/// A directory for one test, removed after it.
struct TemporaryDirectory: ~Copyable {
  let path: String

  init() throws {
    var template = Array("/tmp/cairn-bench-tests-XXXXXX".utf8CString)
    try #require(unsafe mkdtemp(&template) != nil)
    path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  deinit { DirectoryTree.remove(path) }
}

/// Calls with arrays where the protocol takes spans.
extension KeyValueStore {
  func put(_ value: [UInt8], _ key: [UInt8]) throws {
    try key.withBytes { key throws in
      try value.withBytes { value throws in try setValue(value, forKey: key) }
    }
  }

  func got(_ key: [UInt8]) throws -> [UInt8]? {
    try key.withBytes { key throws in try value(forKey: key) }
  }

  func gotInPlace(_ key: [UInt8]) throws -> [UInt8]? {
    try key.withBytes { key throws in
      try withValue(forKey: key) { value in
        unsafe value.withUnsafeBytes { unsafe [UInt8]($0) }
      }
    }
  }

  func remove(_ key: [UInt8]) throws -> Bool {
    try key.withBytes { key throws in try removeValue(forKey: key) }
  }
}
