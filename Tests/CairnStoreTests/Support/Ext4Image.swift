import Foundation

/// An ext4 filesystem in a file. It can be cut off from the file as if by a power cut. Only root
/// may mount one, and not on every machine.
final class Ext4Image: Sendable {
  /// Why this machine cannot have one.
  static let missing: String? = {
    if geteuid() != 0 { return "only root may mount an ext4 image" }
    do {
      let image = try Ext4Image()
      // Not every kernel knows the request that cuts it off.
      try image.cut()
      try image.mountAgain()
      return nil
    } catch { return "no ext4 image can be mounted and cut off here: \(error)" }
  }()

  private let parent: TemporaryDirectory
  var path: String { parent("disk") }
  private var file: String { parent("image") }

  init() throws {
    parent = try TemporaryDirectory(on: .disk)
    try check("mkdir", unsafe mkdir(path, 0o700))
    let image = try check(
      "open", unsafe open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600))
    defer { close(image) }
    try check("ftruncate", ftruncate(image, 128 << 20))
    try Self.run("mkfs.ext4", "-q", "-F", file)
    try Self.run("mount", "-o", "loop", file, path)
  }

  deinit { try? Self.run("umount", "-l", path) }

  /// From here on nothing reaches the disk, not even the journal.
  func cut() throws {
    // EXT4_IOC_SHUTDOWN, which is XFS_IOC_GOINGDOWN, without writing the log.
    let shutdown: UInt = 0x8004_587D
    var withoutLog: UInt32 = 2
    let directory = try check("open", unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
    defer { close(directory) }
    try check("ioctl", unsafe ioctl(directory, shutdown, &withoutLog))
  }

  /// Mounts the filesystem again with what the disk has. Nothing may be using it.
  func mountAgain() throws {
    try Self.run("umount", path)
    try Self.run("mount", "-o", "loop", file, path)
  }

  /// Runs a system command, and throws if it fails.
  static func run(_ words: String...) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = words
    process.environment = ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"]
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    if process.terminationStatus != 0 {
      throw SupportError(call: words.joined(separator: " "), number: process.terminationStatus)
    }
  }
}
