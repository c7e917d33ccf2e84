import Cairn
import CairnLibC

/// The kind of a file, as far as an import needs it.
enum FileKind {
  case regular, directory, link, other

  init(mode: mode_t) {
    switch mode & S_IFMT {
    case S_IFREG: self = .regular
    case S_IFDIR: self = .directory
    case S_IFLNK: self = .link
    default: self = .other
    }
  }

  /// The kind in a directory entry, or `nil` if the filesystem does not provide it.
  init?(entryType: UInt8) {
    switch Int(entryType) {
    case Int(DT_REG): self = .regular
    case Int(DT_DIR): self = .directory
    case Int(DT_LNK): self = .link
    case Int(DT_UNKNOWN): return nil
    default: self = .other
    }
  }
}

/// Distinguishes one file from all others on the machine.
struct FileIdentity: Hashable {
  let device: UInt64
  let inode: UInt64
}

struct FileStatus {
  let kind: FileKind
  let byteCount: Int
  /// The size on disk.
  let allocatedByteCount: Int
  let identity: FileIdentity
  /// When the contents last changed.
  let modified: Timestamp

  init(_ status: stat) {
    kind = FileKind(mode: status.st_mode)
    byteCount = Int(status.st_size)
    allocatedByteCount = Int(status.st_blocks) * 512
    identity = FileIdentity(
      device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(status.st_ino))
    // Some filesystems keep any number of seconds.
    let (seconds, nanoseconds) = (Int64(status.st_mtim.tv_sec), Int64(status.st_mtim.tv_nsec))
    let bounded = min(max(seconds, .min / 1000 + 1), .max / 1000 - 1)
    modified = Timestamp(millisecondsSinceEpoch: bounded * 1000 + nanoseconds / 1_000_000)
  }
}

/// A name in a directory.
struct DirectoryName {
  let bytes: [UInt8]
  let kind: FileKind?
}
