import CairnEssentials
import CairnLibC

/// An overlayfs whose upper layer is on a filesystem of some kind, like a container's root. Only
/// root may mount one, and not on every machine.
final class OverlayMount: Sendable {
  /// The filesystem of the upper layer.
  enum Below: String, Sendable, CaseIterable {
    case ext4, xfs, btrfs, tmpfs

    /// Whether one can be made here. mkfs may be missing, or the kernel may not know the
    /// filesystem.
    var isMissing: Bool { Self.missing.contains(self) }

    private static let missing = Set(
      allCases.filter { geteuid() != 0 || (try? OverlayMount(over: $0)) == nil })
  }

  private let parent: TemporaryDirectory
  /// The lower layer.
  private var below: String { parent("below") }
  /// The overlay.
  var path: String { parent("overlay") }

  /// The upper layer.
  var upper: String { "\(below)/upper" }

  /// - Parameter lower: the lower layer, or `nil` for an empty one.
  init(over kind: Below, lower: String? = nil) throws {
    parent = try TemporaryDirectory(on: .disk)
    try check("mkdir", unsafe mkdir(below, 0o700))
    try check("mkdir", unsafe mkdir(path, 0o700))
    if kind == .tmpfs {
      try Ext4Image.run("mount", "-t", "tmpfs", "-o", "size=64m", "cairn", below)
    } else {
      let file = parent("image")
      let image = try check("open", unsafe open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600))
      defer { close(image) }
      // XFS needs at least 300 MiB.
      try check("ftruncate", ftruncate(image, 320 << 20))
      try Ext4Image.run("mkfs.\(kind.rawValue)", "-q", file)
      try Ext4Image.run("mount", "-o", "loop", file, below)
    }
    for layer in ["lower", "upper", "work"] {
      try check("mkdir", unsafe mkdir("\(below)/\(layer)", 0o700))
    }
    let layers =
      "lowerdir=\(lower ?? "\(below)/lower"),upperdir=\(below)/upper,workdir=\(below)/work"
    try Ext4Image.run("mount", "-t", "overlay", "cairn", "-o", layers, path)
  }

  deinit {
    try? Ext4Image.run("umount", "-l", path)
    try? Ext4Image.run("umount", "-l", below)
  }

  /// Leaves no block free, like other programs that write to the same disk.
  func fill() throws {
    for (number, byteCount) in [1 << 20, 4096].enumerated() {
      let file = try check(
        "open", unsafe open("\(below)/filler\(number)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600))
      defer { close(file) }
      let bytes = [UInt8](repeating: 7, count: byteCount)
      while unsafe write(file, bytes, byteCount) > 0 {}
      fsync(file)
    }
  }
}
