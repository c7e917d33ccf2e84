#if Peers
  import Cairn
  import CairnLibC

  /// The files of a `YYKVStore`, each with one value, named by a hash of its key.
  final class YYKVFiles: Sendable {
    private let path: String
    private let directory: Int32

    init(_ path: String) throws {
      // SAFETY: paths and names are passed as strings that outlive the calls, here and below.
      if unsafe mkdir(path, 0o700) != 0, errno != EEXIST {
        throw BenchFailure.lastSystemError("mkdir", path)
      }
      directory = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      guard directory >= 0 else { throw BenchFailure.lastSystemError("open", path) }
      self.path = path
    }

    func close() { _ = CairnLibC.close(directory) }

    /// 32 hexadecimal digits that represent the key, like MD5 in the original. A collision is just
    /// as unlikely.
    static func name(of key: RawSpan) -> String {
      // Two FNV-1a hashes, with different initial values and mixed at the end.
      var (first, second): (UInt64, UInt64) = (0xCBF2_9CE4_8422_2325, 0x6C62_272E_07BB_0142)
      for offset in 0..<key.byteCount {
        let byte = UInt64(unsafe key.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self))
        first = (first ^ byte) &* 0x0000_0100_0000_01B3
        second = (second ^ byte) &* 0x9E37_79B9_7F4A_7C15
      }
      return hexadecimal(mixed(first)) + hexadecimal(mixed(second ^ UInt64(key.byteCount)))
    }

    private static func mixed(_ word: UInt64) -> UInt64 {
      var word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
      word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
      return word ^ word >> 31
    }

    private static func hexadecimal(_ word: UInt64) -> String {
      let digits = String(word, radix: 16)
      return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    /// Reads a file. Returns `nil` if it does not exist.
    func read(_ name: String) throws -> [UInt8]? {
      let file = unsafe openat(directory, name, O_RDONLY | O_CLOEXEC)
      guard file >= 0 else {
        if errno == ENOENT { return nil }
        throw failure("openat", name)
      }
      defer { _ = CairnLibC.close(file) }
      var status = stat()
      // SAFETY: the kernel fills the structure.
      guard unsafe fstat(file, &status) == 0 else { throw failure("fstat", name) }
      let byteCount = Int(status.st_size)
      // SAFETY: `read` gets the rest of the buffer, and only the bytes that it filled count.
      return try unsafe [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, filled in
        while filled < byteCount {
          let rest = unsafe UnsafeMutableBufferPointer(rebasing: buffer[filled..<byteCount])
          let count = unsafe CairnLibC.read(file, rest.baseAddress, rest.count)
          if count < 0, errno == EINTR { continue }
          guard count > 0 else { throw failure("read", name) }
          filled += count
        }
      }
    }

    /// Writes in place: the original does not write to another file first.
    func write(_ value: RawSpan, _ name: String, syncs: Bool) throws {
      let file = unsafe openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
      guard file >= 0 else { throw failure("openat", name) }
      defer { _ = CairnLibC.close(file) }
      // SAFETY: `write` gets the rest of the span's bytes.
      try unsafe value.withUnsafeBytes { bytes in
        var written = 0
        while written < bytes.count {
          let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[written...])
          let count = unsafe CairnLibC.write(file, rest.baseAddress, rest.count)
          if count < 0, errno == EINTR { continue }
          guard count > 0 else { throw failure("write", name) }
          written += count
        }
      }
      guard syncs else { return }
      // DURABILITY: the contents and the name are on disk before the row that refers to them.
      guard fsync(file) == 0 else { throw failure("fsync", name) }
      guard fsync(directory) == 0 else { throw failure("fsync", path) }
    }

    func remove(_ name: String) throws {
      if unsafe unlinkat(directory, name, 0) != 0, errno != ENOENT {
        throw failure("unlinkat", name)
      }
    }

    private func failure(_ call: String, _ name: String) -> BenchFailure {
      .lastSystemError(call, path + "/" + name)
    }
  }
#endif
