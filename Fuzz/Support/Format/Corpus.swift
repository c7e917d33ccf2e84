import CairnLibC

/// Inputs that are kept as files.
package enum Corpus {
  package struct Input {
    package var path: String
    package var bytes: [UInt8]
  }

  /// The input in a file, or all those directly in a folder, by name.
  package static func inputs(at path: String) throws(FuzzFailure) -> [Input] {
    guard let folder = unsafe opendir(path) else { return [try input(path)] }
    defer { unsafe closedir(folder) }
    var names: [String] = []
    while let entry = unsafe readdir(folder) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
        unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
    var inputs: [Input] = []
    for name in names.sorted() { inputs.append(try input("\(path)/\(name)")) }
    return inputs
  }

  private static func input(_ path: String) throws(FuzzFailure) -> Input {
    let descriptor = unsafe CairnLibC.open(path, O_RDONLY)
    guard descriptor >= 0 else { throw FuzzFailure("\(path): cannot be opened") }
    defer { CairnLibC.close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = unsafe buffer.withUnsafeMutableBytes {
        unsafe read(descriptor, $0.baseAddress, $0.count)
      }
      guard count >= 0 else { throw FuzzFailure("\(path): cannot be read") }
      if count == 0 { return Input(path: path, bytes: bytes) }
      bytes += buffer[..<count]
    }
  }

  package static func write(_ bytes: [UInt8], to path: String) throws(FuzzFailure) {
    let descriptor = unsafe CairnLibC.open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    guard descriptor >= 0 else { throw FuzzFailure("\(path): cannot be made") }
    defer { CairnLibC.close(descriptor) }
    let count = unsafe bytes.withUnsafeBytes {
      unsafe CairnLibC.write(descriptor, $0.baseAddress, $0.count)
    }
    guard count == bytes.count else { throw FuzzFailure("\(path): cannot be written") }
  }
}
