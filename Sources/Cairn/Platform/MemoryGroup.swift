/// A control group that can limit this process's memory, such as a container's.
struct MemoryGroup: Sendable {
  enum Version: Sendable { case one, two }

  var version: Version
  /// The directory that contains the group's files.
  var directory: String

  /// The groups of this process. The kernel lists the process's place in each hierarchy, and where
  /// the hierarchies are mounted; see cgroups(7).
  static func all(_ files: SystemFiles) -> [MemoryGroup] {
    let mounts = (files.text("/proc/self/mountinfo") ?? "").split(separator: "\n")
    let memberships = (files.text("/proc/self/cgroup") ?? "").split(separator: "\n")
    return memberships.compactMap { line in
      // "0::/path" for version 2, "4:memory,…:/path" for version 1.
      let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3 else { return nil }
      let version: Version
      if fields[0] == "0" && fields[1].isEmpty {
        version = .two
      } else if fields[1].split(separator: ",").contains("memory") {
        version = .one
      } else {
        return nil
      }
      for mount in mounts {
        if let directory = directory(of: String(fields[2]), version: version, mount: mount) {
          return MemoryGroup(version: version, directory: directory)
        }
      }
      return nil
    }
  }

  /// The directory of a group in a mount, or `nil` if the mount does not show it. According to
  /// proc_pid_mountinfo(5):
  ///
  ///     36 35 98:0 /root /mount/point options … - type source options
  private static func directory(
    of path: String, version: Version, mount: Substring
  ) -> String? {
    let fields = mount.split(separator: " ")
    guard let dash = fields.firstIndex(of: "-"), dash >= 5, fields.count > dash + 3 else {
      return nil
    }
    switch version {
    case .two: if fields[dash + 1] != "cgroup2" { return nil }
    case .one:
      let options = fields[dash + 3].split(separator: ",")
      if fields[dash + 1] != "cgroup" || !options.contains("memory") { return nil }
    }
    let root = String(fields[3])
    let point = String(fields[4])
    // A mount may show only part of the hierarchy.
    if root == "/" { return path == "/" ? point : point + path }
    if path == root { return point }
    return path.hasPrefix(root + "/") ? point + path.dropFirst(root.count) : nil
  }

  /// The file that exists as long as the group does.
  var usageFile: String {
    directory + (version == .two ? "/memory.current" : "/memory.usage_in_bytes")
  }

  /// The share of its limit that the group uses, from 0 to slightly above 1, or `nil` if there is
  /// no limit.
  ///
  /// File pages not used recently do not count: the kernel reclaims them first.
  func usedShare(_ files: SystemFiles) -> Double? {
    let limits: [UInt64?]
    let used: UInt64?
    let reclaimable: UInt64?
    switch version {
    case .two:
      limits = ["memory.high", "memory.max"].map { files.number("\(directory)/\($0)") }
      used = files.number(usageFile)
      reclaimable = files.number(named: "inactive_file", in: "\(directory)/memory.stat")
    case .one:
      // A number near 2^63 means no limit.
      limits = [files.number("\(directory)/memory.limit_in_bytes")].map { limit in
        limit.flatMap { $0 >= 1 << 60 ? nil : $0 }
      }
      used = files.number(usageFile)
      reclaimable = files.number(named: "total_inactive_file", in: "\(directory)/memory.stat")
    }
    guard let limit = limits.compactMap({ $0 }).min(), let used else { return nil }
    if limit == 0 { return 1 }
    let kept = used - min(used, reclaimable ?? 0)
    return Double(kept) / Double(limit)
  }
}
