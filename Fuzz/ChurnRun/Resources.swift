import CairnLibC
import FuzzSupport

/// The resources of the process, according to the kernel.
struct Resources {
  var descriptorCount = 0
  /// Mappings of the store's files.
  var mappingCount = 0
  /// How many of these files have been unlinked.
  var deletedMappingCount = 0
  /// RssAnon: memory that belongs to no file, in bytes.
  var anonymousByteCount = 0

  static func current(store path: String) throws -> Resources {
    var resources = Resources()
    guard let directory = unsafe opendir("/proc/self/fd") else {
      throw FuzzFailure("no /proc/self/fd")
    }
    defer { unsafe closedir(directory) }
    while unsafe readdir(directory) != nil { resources.descriptorCount += 1 }
    // ".", ".." and the directory itself.
    resources.descriptorCount -= 3
    for line in try lines(of: "/proc/self/maps") where line.contains(path) {
      resources.mappingCount += 1
      if line.hasSuffix("(deleted)") { resources.deletedMappingCount += 1 }
    }
    for line in try lines(of: "/proc/self/status") where line.hasPrefix("RssAnon:") {
      let digits = line.filter(\.isNumber)
      resources.anonymousByteCount = (Int(digits) ?? 0) << 10
    }
    return resources
  }

  static func limitDescriptors(to count: UInt) {
    var limit = rlimit(rlim_cur: rlim_t(count), rlim_max: rlim_t(count))
    if unsafe setrlimit(resourceNumber(RLIMIT_NOFILE), &limit) != 0 { unsafe perror("setrlimit") }
  }

  private static func lines(of path: String) throws -> [Substring] {
    guard let file = unsafe fopen(path, "r") else { throw FuzzFailure("no \(path)") }
    defer { unsafe fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = unsafe fread(&buffer, 1, buffer.count, file)
      if count == 0 { break }
      bytes += buffer[..<count]
    }
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n")
  }
}
