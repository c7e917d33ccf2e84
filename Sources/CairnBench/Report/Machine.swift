import CairnLibC

/// The machine of the measurements.
struct Machine: Codable, Sendable {
  var processor: String
  var processorCount: Int
  var memoryBytes: Int
  var architecture: String
  var operatingSystem: String

  static var current: Machine {
    let information = ProcFile.lines("/proc/cpuinfo")
    let model = information.first { $0.hasPrefix("model name") || $0.hasPrefix("CPU part") }
    let name = model?.split(separator: ":", maxSplits: 1).last ?? "unknown"
    #if arch(x86_64)
      let architecture = "x86_64"
    #elseif arch(arm64)
      let architecture = "aarch64"
    #else
      let architecture = "other"
    #endif
    let kernel = ProcFile.lines("/proc/sys/kernel/osrelease").first ?? ""
    return Machine(
      processor: String(name.drop { $0 == " " }),
      processorCount: sysconf(Int32(_SC_NPROCESSORS_ONLN)),
      memoryBytes: memory("MemTotal:"), architecture: architecture,
      operatingSystem: "Linux \(kernel)")
  }

  static var availableMemoryByteCount: Int { memory("MemAvailable:") }

  private static func memory(_ field: String) -> Int {
    let line = ProcFile.lines("/proc/meminfo").first { $0.hasPrefix(field) } ?? ""
    return (line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 1024
  }
}

/// The filesystem of the stores.
struct FileSystem: Codable, Sendable {
  var type: String
  var device: String
  var mountPoint: String
  /// The run's directory, which is removed at the end of the run.
  var path: String

  /// Uses the longest mount point above `path`, which must be absolute. Of several mounts at one
  /// place, the last counts.
  init(of path: String) {
    self.init(type: "unknown", device: "unknown", mountPoint: "unknown", path: path)
    var longest = 0
    for line in ProcFile.lines("/proc/self/mountinfo") {
      let fields = line.split(separator: " ")
      guard fields.count > 4, let dash = fields.firstIndex(of: "-"), dash + 2 < fields.count
      else { continue }
      let mountPoint = fields[4]
      let isAbove =
        mountPoint == "/" || path == mountPoint || path.hasPrefix(mountPoint + "/")
      guard isAbove, mountPoint.utf8.count >= longest else { continue }
      longest = mountPoint.utf8.count
      type = String(fields[dash + 1])
      device = String(fields[dash + 2])
      self.mountPoint = String(mountPoint)
    }
  }

  private init(type: String, device: String, mountPoint: String, path: String) {
    self.type = type
    self.device = device
    self.mountPoint = mountPoint
    self.path = path
  }
}
