/// The result of fstat(2), as far as the store needs it.
package struct FileStatus: Sendable, Hashable {
  package enum Kind: String, Sendable {
    case regular = "a regular file"
    case directory = "a directory"
    case other = "neither a file nor a directory"
  }
  package var kind: Kind
  package var byteCount: Int
  package var allocatedByteCount: Int
  package var owner: UInt32
  package var linkCount: Int
  /// The permissions of the owner, the group and others.
  package var permissions: UInt32
  /// The identity of the file, or `nil` if it is unknown.
  package var identity: FileIdentity?

  package init(
    kind: Kind, byteCount: Int, allocatedByteCount: Int, owner: UInt32, linkCount: Int,
    permissions: UInt32 = 0o600, identity: FileIdentity? = nil
  ) {
    self.kind = kind
    self.byteCount = byteCount
    self.allocatedByteCount = allocatedByteCount
    self.owner = owner
    self.linkCount = linkCount
    self.permissions = permissions
    self.identity = identity
  }
}

/// The device and the inode of a file.
package struct FileIdentity: Sendable, Hashable {
  package var device: UInt64
  package var inode: UInt64

  package init(device: UInt64, inode: UInt64) {
    self.device = device
    self.inode = inode
  }
}

/// The result of statfs(2), as far as the store needs it.
package struct VolumeStatus: Sendable, Hashable {
  /// The name of the filesystem if it cannot hold a store because its locks are unreliable.
  package var unsupportedName: String?
  /// Whether files are mapped for reading.
  package var mapsFiles: Bool

  package init(unsupportedName: String?, mapsFiles: Bool) {
    self.unsupportedName = unsupportedName
    self.mapsFiles = mapsFiles
  }
}
