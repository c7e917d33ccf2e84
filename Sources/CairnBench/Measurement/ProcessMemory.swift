import CairnLibC

/// The resident memory of this process, including mapped pages of files.
enum ProcessMemory {
  /// Resets the peak, so that the next reading covers only one row. If the kernel does not allow
  /// that, the peak is that of the whole process.
  static func resetPeak() {
    // SAFETY: literals live forever; one byte is written.
    let file = unsafe open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return }
    _ = unsafe "5".withCString { unsafe write(file, $0, 1) }
    close(file)
  }

  static var peakByteCount: Int { byteCount(of: "VmHWM:") }

  /// Resident memory that belongs to no file.
  static var anonymousByteCount: Int { byteCount(of: "RssAnon:") }

  private static func byteCount(of name: String) -> Int {
    for line in ProcFile.lines("/proc/self/status") where line.hasPrefix(name) {
      let fields = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
      if fields.count > 1, let kibibytes = Int(fields[1]) { return kibibytes * 1024 }
    }
    return 0
  }
}

extension ProcessMemory {
  /// The bytes of pages that the process has passed to the kernel for writing to disk so far, by
  /// calls and through mappings.
  static var writtenByteCount: Int {
    for line in ProcFile.lines("/proc/self/io") where line.hasPrefix("write_bytes:") {
      return Int(line.drop { $0 != " " }.dropFirst()) ?? 0
    }
    return 0
  }
}

/// Text files of the kernel, which have no size.
enum ProcFile {
  static func lines(_ path: String) -> [Substring] { text(path).split(separator: "\n") }

  static func text(_ path: String) -> String {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return "" }
    defer { close(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      // SAFETY: `read` fills at most the chunk.
      let count = unsafe chunk.withUnsafeMutableBytes {
        unsafe read(file, $0.baseAddress, $0.count)
      }
      guard count > 0 else { break }
      bytes += chunk[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
